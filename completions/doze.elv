
use builtin;
use str;

set edit:completion:arg-completer[doze] = {|@words|
    fn spaces {|n|
        builtin:repeat $n ' ' | str:join ''
    }
    fn cand {|text desc|
        edit:complex-candidate $text &display=$text' '(spaces (- 14 (wcswidth $text)))$desc
    }
    var command = 'doze'
    for word $words[1..-1] {
        if (str:has-prefix $word '-') {
            break
        }
        set command = $command';'$word
    }
    var completions = [
        &'doze'= {
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
            cand -V 'Print version'
            cand --version 'Print version'
            cand serve 'Run the broker'
            cand compact 'Clean compacted topics by hand, and give back unused space'
            cand recover 'Repair a stopped data directory, keeping what is removed'
            cand verify 'Check a stopped data directory, and say what is damaged'
            cand inspect 'Show what is in a data directory that no broker is running on'
            cand dump-segment 'Show what stands in segment files, past any damage'
            cand completions 'Print the completion script of a shell'
        }
        &'doze;serve'= {
            cand --listen 'The address to listen on. Port 0 picks a free one. Kafka''s listeners [default: 127.0.0.1:9092]'
            cand --advertise 'The address that clients are told to connect to. Kafka''s advertised.listeners [default: the one that each client connected to]'
            cand --data-dir 'Where the data is kept. Kafka''s log.dirs [default: ./data]'
            cand --meta-db 'The file of topics, committed offsets and producer ids [default: meta.db in the data directory]'
            cand --segment-bytes 'How large a segment gets before a new one is begun, at least 1048576. Kafka''s log.segment.bytes [default: 134217728]'
            cand --index-interval-bytes 'How many bytes of a segment lie between two entries of its index. Kafka''s log.index.interval.bytes [default: 4096]'
            cand --fsync-interval 'How often everything written is flushed to the disk, as 500ms, 2s, 1m or a number of milliseconds; 0 never. Records sent with acks=all are flushed before they are acknowledged, whatever this is [default: 500ms]'
            cand --retention-bytes 'Delete the oldest segments of a partition that is larger than this; -1 deletes none. Kafka''s log.retention.bytes [default: -1]'
            cand --retention-ms 'Delete segments whose newest record is older than this many milliseconds; -1 deletes none. Kafka''s log.retention.ms [default: -1]'
            cand --auto-create-topics 'Whether a topic is created when a client asks for one that does not exist. Kafka''s auto.create.topics.enable [default: true]'
            cand --default-partitions 'How many partitions a topic gets when its creator does not say. Kafka''s num.partitions [default: 1]'
            cand --scrub-rate 'How many bytes of sealed segments are read again in a second, in the background, to find what has rotted on the disk; 0 turns that off [default: 4194304]'
            cand --scrub-interval 'How long after the start of one such pass over all sealed segments the next begins, as 7d, 12h or 30m, at least 1s [default: 7d]'
            cand --override 'Set a broker config under Kafka''s name. Can be given several times; of two for the same key the later counts. DOZE_OVERRIDE holds several, separated by semicolons'
            cand --log-level 'How much is logged: off, error, warn, info, debug or trace [default: info]'
            cand --log-format 'How the log and the ready line are written: text or json, one object a line [default: text]'
            cand --config 'A TOML file of settings: the long flags without their dashes in front, and broker configs under Kafka''s names'
            cand --print-config 'Print each setting with its value and where it is from, as a file for --config, and exit'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'doze;compact'= {
            cand --meta-db 'The file of topics, committed offsets and producer ids, where it is not meta.db in the data directory'
            cand --override 'A broker config as doze serve or Apache Kafka''s server.properties has it, for topics that have none of their own: log.retention.ms=60000'
            cand --metadata-log 'For a directory of Apache Kafka without one: where its metadata log is, __cluster_metadata-0 or a directory that has it'
            cand --config 'For a directory of Apache Kafka: a config of the topics that are named, whatever the metadata log says: cleanup.policy=compact'
            cand --dry-run 'Only say how many bytes and records would go; nothing is written'
            cand --roll 'Seal the active segments first, so that all records are cleaned; not in Apache Kafka''s directories'
            cand --retention 'Also remove the segments that are too old or too many by retention.ms and retention.bytes, of all topics'
            cand --json 'One JSON object a line instead of tables; docs/offline.md has their fields'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'doze;recover'= {
            cand --meta-db 'The file of topics, committed offsets and producer ids, where it is not meta.db in the data directory'
            cand --to 'Repair a copy in this new or empty directory, and leave the original as it is'
            cand --jobs 'How many segments are looked at at once [default: one a core]'
            cand --override 'A broker config as doze serve is given it, for the logs that are opened: log.index.interval.bytes=4096'
            cand --dry-run 'Only show the plan; nothing is written'
            cand -y 'Do it without asking'
            cand --yes 'Do it without asking'
            cand --accept-loss 'Also take the steps that lose records which may have been acknowledged; the plan names their offsets'
            cand --json 'One JSON object a line instead of tables; docs/offline.md has their fields'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'doze;verify'= {
            cand --meta-db 'The file of topics, committed offsets and producer ids, where it is not meta.db in the data directory'
            cand --topic 'Only this topic; may be given more than once'
            cand --partition 'Only partitions of this number; may be given more than once'
            cand -j 'How many segments are read at once [default: one a core]'
            cand --jobs 'How many segments are read at once [default: one a core]'
            cand --quick 'Only names, sizes, the first and last batches, the ends of indexes, and the catalog: what takes no time'
            cand --deep 'Also every record through its codec: counts, offsets, timestamps, lengths, and keys where the topic is compacted'
            cand --json 'One JSON object a line instead of tables; docs/offline.md has their fields'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'doze;inspect'= {
            cand --meta-db 'The file of topics, committed offsets and producer ids, where it is not meta.db in the data directory'
            cand --count 'Read the header of every batch, so that numbers of batches and records are exact'
            cand --json 'One JSON object a line instead of tables; docs/offline.md has their fields'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'doze;dump-segment'= {
            cand --from-offset 'The first offset to show'
            cand --to-offset 'The last offset to show'
            cand --from-time 'The earliest timestamp to show: milliseconds since the Unix epoch, or a date and time in UTC as in 2026-11-30T02:06:00.000Z, of which the end may be left out'
            cand --to-time 'The latest timestamp to show'
            cand --key 'How keys are shown'
            cand --value 'How values are shown, those of headers too'
            cand --limit 'Stop after this many entries: records with --records, else batches or whatever else the file has'
            cand -j 'How many stretches of a log are decoded at once [default: one a core, at most 8]'
            cand --jobs 'How many stretches of a log are decoded at once [default: one a core, at most 8]'
            cand --records 'The records of each batch as well, not only its header'
            cand --damaged 'Also the records of batches whose checksum is wrong, as far as they can be read'
            cand --all-files 'Of a folder every file that can be decoded, not only the logs that count'
            cand --json 'One JSON object a line instead of tables; docs/offline.md has their fields'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'doze;completions'= {
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
    ]
    $completions[$command]
}
