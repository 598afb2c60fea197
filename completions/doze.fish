# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_doze_global_optspecs
    string join \n h/help V/version
end

function __fish_doze_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_doze_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_doze_using_subcommand
    set -l cmd (__fish_doze_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c doze -n "__fish_doze_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c doze -n "__fish_doze_needs_command" -s V -l version -d 'Print version'
complete -c doze -n "__fish_doze_needs_command" -f -a "serve" -d 'Run the broker'
complete -c doze -n "__fish_doze_needs_command" -f -a "compact" -d 'Clean compacted topics by hand, and give back unused space'
complete -c doze -n "__fish_doze_needs_command" -f -a "recover" -d 'Repair a stopped data directory, keeping what is removed'
complete -c doze -n "__fish_doze_needs_command" -f -a "verify" -d 'Check a stopped data directory, and say what is damaged'
complete -c doze -n "__fish_doze_needs_command" -f -a "inspect" -d 'Show what is in a data directory that no broker is running on'
complete -c doze -n "__fish_doze_needs_command" -f -a "dump-segment" -d 'Show what stands in segment files, past any damage'
complete -c doze -n "__fish_doze_needs_command" -f -a "completions" -d 'Print the completion script of a shell'
complete -c doze -n "__fish_doze_using_subcommand serve" -l listen -d 'The address to listen on. Port 0 picks a free one. Kafka\'s listeners [default: 127.0.0.1:9092]' -r
complete -c doze -n "__fish_doze_using_subcommand serve" -l advertise -d 'The address that clients are told to connect to. Kafka\'s advertised.listeners [default: the one that each client connected to]' -r
complete -c doze -n "__fish_doze_using_subcommand serve" -l data-dir -d 'Where the data is kept. Kafka\'s log.dirs [default: ./data]' -r -f -a "(__fish_complete_directories)"
complete -c doze -n "__fish_doze_using_subcommand serve" -l meta-db -d 'The file of topics, committed offsets and producer ids [default: meta.db in the data directory]' -r -F
complete -c doze -n "__fish_doze_using_subcommand serve" -l segment-bytes -d 'How large a segment gets before a new one is begun, at least 1048576. Kafka\'s log.segment.bytes [default: 134217728]' -r
complete -c doze -n "__fish_doze_using_subcommand serve" -l index-interval-bytes -d 'How many bytes of a segment lie between two entries of its index. Kafka\'s log.index.interval.bytes [default: 4096]' -r
complete -c doze -n "__fish_doze_using_subcommand serve" -l fsync-interval -d 'How often everything written is flushed to the disk, as 500ms, 2s, 1m or a number of milliseconds; 0 never. Records sent with acks=all are flushed before they are acknowledged, whatever this is [default: 500ms]' -r
complete -c doze -n "__fish_doze_using_subcommand serve" -l retention-bytes -d 'Delete the oldest segments of a partition that is larger than this; -1 deletes none. Kafka\'s log.retention.bytes [default: -1]' -r
complete -c doze -n "__fish_doze_using_subcommand serve" -l retention-ms -d 'Delete segments whose newest record is older than this many milliseconds; -1 deletes none. Kafka\'s log.retention.ms [default: -1]' -r
complete -c doze -n "__fish_doze_using_subcommand serve" -l auto-create-topics -d 'Whether a topic is created when a client asks for one that does not exist. Kafka\'s auto.create.topics.enable [default: true]' -r
complete -c doze -n "__fish_doze_using_subcommand serve" -l default-partitions -d 'How many partitions a topic gets when its creator does not say. Kafka\'s num.partitions [default: 1]' -r
complete -c doze -n "__fish_doze_using_subcommand serve" -l scrub-rate -d 'How many bytes of sealed segments are read again in a second, in the background, to find what has rotted on the disk; 0 turns that off [default: 4194304]' -r
complete -c doze -n "__fish_doze_using_subcommand serve" -l scrub-interval -d 'How long after the start of one such pass over all sealed segments the next begins, as 7d, 12h or 30m, at least 1s [default: 7d]' -r
complete -c doze -n "__fish_doze_using_subcommand serve" -l override -d 'Set a broker config under Kafka\'s name. Can be given several times; of two for the same key the later counts. DOZE_OVERRIDE holds several, separated by semicolons' -r
complete -c doze -n "__fish_doze_using_subcommand serve" -l log-level -d 'How much is logged: off, error, warn, info, debug or trace [default: info]' -r
complete -c doze -n "__fish_doze_using_subcommand serve" -l log-format -d 'How the log and the ready line are written: text or json, one object a line [default: text]' -r
complete -c doze -n "__fish_doze_using_subcommand serve" -l config -d 'A TOML file of settings: the long flags without their dashes in front, and broker configs under Kafka\'s names' -r -F
complete -c doze -n "__fish_doze_using_subcommand serve" -l print-config -d 'Print each setting with its value and where it is from, as a file for --config, and exit'
complete -c doze -n "__fish_doze_using_subcommand serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c doze -n "__fish_doze_using_subcommand compact" -l meta-db -d 'The file of topics, committed offsets and producer ids, where it is not meta.db in the data directory' -r -F
complete -c doze -n "__fish_doze_using_subcommand compact" -l override -d 'A broker config as doze serve or Apache Kafka\'s server.properties has it, for topics that have none of their own: log.retention.ms=60000' -r
complete -c doze -n "__fish_doze_using_subcommand compact" -l metadata-log -d 'For a directory of Apache Kafka without one: where its metadata log is, __cluster_metadata-0 or a directory that has it' -r -f -a "(__fish_complete_directories)"
complete -c doze -n "__fish_doze_using_subcommand compact" -l config -d 'For a directory of Apache Kafka: a config of the topics that are named, whatever the metadata log says: cleanup.policy=compact' -r
complete -c doze -n "__fish_doze_using_subcommand compact" -l dry-run -d 'Only say how many bytes and records would go; nothing is written'
complete -c doze -n "__fish_doze_using_subcommand compact" -l roll -d 'Seal the active segments first, so that all records are cleaned; not in Apache Kafka\'s directories'
complete -c doze -n "__fish_doze_using_subcommand compact" -l retention -d 'Also remove the segments that are too old or too many by retention.ms and retention.bytes, of all topics'
complete -c doze -n "__fish_doze_using_subcommand compact" -l json -d 'One JSON object a line instead of tables; docs/offline.md has their fields'
complete -c doze -n "__fish_doze_using_subcommand compact" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c doze -n "__fish_doze_using_subcommand recover" -l meta-db -d 'The file of topics, committed offsets and producer ids, where it is not meta.db in the data directory' -r -F
complete -c doze -n "__fish_doze_using_subcommand recover" -l to -d 'Repair a copy in this new or empty directory, and leave the original as it is' -r -f -a "(__fish_complete_directories)"
complete -c doze -n "__fish_doze_using_subcommand recover" -l jobs -d 'How many segments are looked at at once [default: one a core]' -r
complete -c doze -n "__fish_doze_using_subcommand recover" -l override -d 'A broker config as doze serve is given it, for the logs that are opened: log.index.interval.bytes=4096' -r
complete -c doze -n "__fish_doze_using_subcommand recover" -l dry-run -d 'Only show the plan; nothing is written'
complete -c doze -n "__fish_doze_using_subcommand recover" -s y -l yes -d 'Do it without asking'
complete -c doze -n "__fish_doze_using_subcommand recover" -l accept-loss -d 'Also take the steps that lose records which may have been acknowledged; the plan names their offsets'
complete -c doze -n "__fish_doze_using_subcommand recover" -l json -d 'One JSON object a line instead of tables; docs/offline.md has their fields'
complete -c doze -n "__fish_doze_using_subcommand recover" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c doze -n "__fish_doze_using_subcommand verify" -l meta-db -d 'The file of topics, committed offsets and producer ids, where it is not meta.db in the data directory' -r -F
complete -c doze -n "__fish_doze_using_subcommand verify" -l topic -d 'Only this topic; may be given more than once' -r
complete -c doze -n "__fish_doze_using_subcommand verify" -l partition -d 'Only partitions of this number; may be given more than once' -r
complete -c doze -n "__fish_doze_using_subcommand verify" -s j -l jobs -d 'How many segments are read at once [default: one a core]' -r
complete -c doze -n "__fish_doze_using_subcommand verify" -l quick -d 'Only names, sizes, the first and last batches, the ends of indexes, and the catalog: what takes no time'
complete -c doze -n "__fish_doze_using_subcommand verify" -l deep -d 'Also every record through its codec: counts, offsets, timestamps, lengths, and keys where the topic is compacted'
complete -c doze -n "__fish_doze_using_subcommand verify" -l json -d 'One JSON object a line instead of tables; docs/offline.md has their fields'
complete -c doze -n "__fish_doze_using_subcommand verify" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c doze -n "__fish_doze_using_subcommand inspect" -l meta-db -d 'The file of topics, committed offsets and producer ids, where it is not meta.db in the data directory' -r -F
complete -c doze -n "__fish_doze_using_subcommand inspect" -l count -d 'Read the header of every batch, so that numbers of batches and records are exact'
complete -c doze -n "__fish_doze_using_subcommand inspect" -l json -d 'One JSON object a line instead of tables; docs/offline.md has their fields'
complete -c doze -n "__fish_doze_using_subcommand inspect" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c doze -n "__fish_doze_using_subcommand dump-segment" -l from-offset -d 'The first offset to show' -r
complete -c doze -n "__fish_doze_using_subcommand dump-segment" -l to-offset -d 'The last offset to show' -r
complete -c doze -n "__fish_doze_using_subcommand dump-segment" -l from-time -d 'The earliest timestamp to show: milliseconds since the Unix epoch, or a date and time in UTC as in 2026-11-30T02:06:00.000Z, of which the end may be left out' -r
complete -c doze -n "__fish_doze_using_subcommand dump-segment" -l to-time -d 'The latest timestamp to show' -r
complete -c doze -n "__fish_doze_using_subcommand dump-segment" -l key -d 'How keys are shown' -r -f -a "text\t'As text. Bytes that are no UTF-8 are escaped, and with --json the whole is given as base64 in a field of its own'
json\t'As the JSON that it is; where it is none, as text'
hex\t'Two digits a byte'
base64\t'Base64, with padding'
length\t'The number of bytes alone'
none\t'Not at all'"
complete -c doze -n "__fish_doze_using_subcommand dump-segment" -l value -d 'How values are shown, those of headers too' -r -f -a "text\t'As text. Bytes that are no UTF-8 are escaped, and with --json the whole is given as base64 in a field of its own'
json\t'As the JSON that it is; where it is none, as text'
hex\t'Two digits a byte'
base64\t'Base64, with padding'
length\t'The number of bytes alone'
none\t'Not at all'"
complete -c doze -n "__fish_doze_using_subcommand dump-segment" -l limit -d 'Stop after this many entries: records with --records, else batches or whatever else the file has' -r
complete -c doze -n "__fish_doze_using_subcommand dump-segment" -s j -l jobs -d 'How many stretches of a log are decoded at once [default: one a core, at most 8]' -r
complete -c doze -n "__fish_doze_using_subcommand dump-segment" -l records -d 'The records of each batch as well, not only its header'
complete -c doze -n "__fish_doze_using_subcommand dump-segment" -l damaged -d 'Also the records of batches whose checksum is wrong, as far as they can be read'
complete -c doze -n "__fish_doze_using_subcommand dump-segment" -l all-files -d 'Of a folder every file that can be decoded, not only the logs that count'
complete -c doze -n "__fish_doze_using_subcommand dump-segment" -l json -d 'One JSON object a line instead of tables; docs/offline.md has their fields'
complete -c doze -n "__fish_doze_using_subcommand dump-segment" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c doze -n "__fish_doze_using_subcommand completions" -s h -l help -d 'Print help (see more with \'--help\')'
