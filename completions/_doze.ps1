
using namespace System.Management.Automation
using namespace System.Management.Automation.Language

Register-ArgumentCompleter -Native -CommandName 'doze' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)

    $commandElements = $commandAst.CommandElements
    $command = @(
        'doze'
        for ($i = 1; $i -lt $commandElements.Count; $i++) {
            $element = $commandElements[$i]
            if ($element -isnot [StringConstantExpressionAst] -or
                $element.StringConstantType -ne [StringConstantType]::BareWord -or
                $element.Value.StartsWith('-') -or
                $element.Value -eq $wordToComplete) {
                break
        }
        $element.Value
    }) -join ';'

    $completions = @(switch ($command) {
        'doze' {
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('-V', '-V ', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('--version', '--version', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('serve', 'serve', [CompletionResultType]::ParameterValue, 'Run the broker')
            [CompletionResult]::new('compact', 'compact', [CompletionResultType]::ParameterValue, 'Clean compacted topics by hand, and give back unused space')
            [CompletionResult]::new('recover', 'recover', [CompletionResultType]::ParameterValue, 'Repair a stopped data directory, keeping what is removed')
            [CompletionResult]::new('verify', 'verify', [CompletionResultType]::ParameterValue, 'Check a stopped data directory, and say what is damaged')
            [CompletionResult]::new('inspect', 'inspect', [CompletionResultType]::ParameterValue, 'Show what is in a data directory that no broker is running on')
            [CompletionResult]::new('dump-segment', 'dump-segment', [CompletionResultType]::ParameterValue, 'Show what stands in segment files, past any damage')
            [CompletionResult]::new('completions', 'completions', [CompletionResultType]::ParameterValue, 'Print the completion script of a shell')
            break
        }
        'doze;serve' {
            [CompletionResult]::new('--listen', '--listen', [CompletionResultType]::ParameterName, 'The address to listen on. Port 0 picks a free one. Kafka''s listeners [default: 127.0.0.1:9092]')
            [CompletionResult]::new('--advertise', '--advertise', [CompletionResultType]::ParameterName, 'The address that clients are told to connect to. Kafka''s advertised.listeners [default: the one that each client connected to]')
            [CompletionResult]::new('--data-dir', '--data-dir', [CompletionResultType]::ParameterName, 'Where the data is kept. Kafka''s log.dirs [default: ./data]')
            [CompletionResult]::new('--meta-db', '--meta-db', [CompletionResultType]::ParameterName, 'The file of topics, committed offsets and producer ids [default: meta.db in the data directory]')
            [CompletionResult]::new('--segment-bytes', '--segment-bytes', [CompletionResultType]::ParameterName, 'How large a segment gets before a new one is begun, at least 1048576. Kafka''s log.segment.bytes [default: 134217728]')
            [CompletionResult]::new('--index-interval-bytes', '--index-interval-bytes', [CompletionResultType]::ParameterName, 'How many bytes of a segment lie between two entries of its index. Kafka''s log.index.interval.bytes [default: 4096]')
            [CompletionResult]::new('--fsync-interval', '--fsync-interval', [CompletionResultType]::ParameterName, 'How often everything written is flushed to the disk, as 500ms, 2s, 1m or a number of milliseconds; 0 never. Records sent with acks=all are flushed before they are acknowledged, whatever this is [default: 500ms]')
            [CompletionResult]::new('--retention-bytes', '--retention-bytes', [CompletionResultType]::ParameterName, 'Delete the oldest segments of a partition that is larger than this; -1 deletes none. Kafka''s log.retention.bytes [default: -1]')
            [CompletionResult]::new('--retention-ms', '--retention-ms', [CompletionResultType]::ParameterName, 'Delete segments whose newest record is older than this many milliseconds; -1 deletes none. Kafka''s log.retention.ms [default: -1]')
            [CompletionResult]::new('--auto-create-topics', '--auto-create-topics', [CompletionResultType]::ParameterName, 'Whether a topic is created when a client asks for one that does not exist. Kafka''s auto.create.topics.enable [default: true]')
            [CompletionResult]::new('--default-partitions', '--default-partitions', [CompletionResultType]::ParameterName, 'How many partitions a topic gets when its creator does not say. Kafka''s num.partitions [default: 1]')
            [CompletionResult]::new('--scrub-rate', '--scrub-rate', [CompletionResultType]::ParameterName, 'How many bytes of sealed segments are read again in a second, in the background, to find what has rotted on the disk; 0 turns that off [default: 4194304]')
            [CompletionResult]::new('--scrub-interval', '--scrub-interval', [CompletionResultType]::ParameterName, 'How long after the start of one such pass over all sealed segments the next begins, as 7d, 12h or 30m, at least 1s [default: 7d]')
            [CompletionResult]::new('--override', '--override', [CompletionResultType]::ParameterName, 'Set a broker config under Kafka''s name. Can be given several times; of two for the same key the later counts. DOZE_OVERRIDE holds several, separated by semicolons')
            [CompletionResult]::new('--log-level', '--log-level', [CompletionResultType]::ParameterName, 'How much is logged: off, error, warn, info, debug or trace [default: info]')
            [CompletionResult]::new('--log-format', '--log-format', [CompletionResultType]::ParameterName, 'How the log and the ready line are written: text or json, one object a line [default: text]')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'A TOML file of settings: the long flags without their dashes in front, and broker configs under Kafka''s names')
            [CompletionResult]::new('--print-config', '--print-config', [CompletionResultType]::ParameterName, 'Print each setting with its value and where it is from, as a file for --config, and exit')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'doze;compact' {
            [CompletionResult]::new('--meta-db', '--meta-db', [CompletionResultType]::ParameterName, 'The file of topics, committed offsets and producer ids, where it is not meta.db in the data directory')
            [CompletionResult]::new('--override', '--override', [CompletionResultType]::ParameterName, 'A broker config as doze serve or Apache Kafka''s server.properties has it, for topics that have none of their own: log.retention.ms=60000')
            [CompletionResult]::new('--metadata-log', '--metadata-log', [CompletionResultType]::ParameterName, 'For a directory of Apache Kafka without one: where its metadata log is, __cluster_metadata-0 or a directory that has it')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'For a directory of Apache Kafka: a config of the topics that are named, whatever the metadata log says: cleanup.policy=compact')
            [CompletionResult]::new('--dry-run', '--dry-run', [CompletionResultType]::ParameterName, 'Only say how many bytes and records would go; nothing is written')
            [CompletionResult]::new('--roll', '--roll', [CompletionResultType]::ParameterName, 'Seal the active segments first, so that all records are cleaned; not in Apache Kafka''s directories')
            [CompletionResult]::new('--retention', '--retention', [CompletionResultType]::ParameterName, 'Also remove the segments that are too old or too many by retention.ms and retention.bytes, of all topics')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'One JSON object a line instead of tables; docs/offline.md has their fields')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'doze;recover' {
            [CompletionResult]::new('--meta-db', '--meta-db', [CompletionResultType]::ParameterName, 'The file of topics, committed offsets and producer ids, where it is not meta.db in the data directory')
            [CompletionResult]::new('--to', '--to', [CompletionResultType]::ParameterName, 'Repair a copy in this new or empty directory, and leave the original as it is')
            [CompletionResult]::new('--jobs', '--jobs', [CompletionResultType]::ParameterName, 'How many segments are looked at at once [default: one a core]')
            [CompletionResult]::new('--override', '--override', [CompletionResultType]::ParameterName, 'A broker config as doze serve is given it, for the logs that are opened: log.index.interval.bytes=4096')
            [CompletionResult]::new('--dry-run', '--dry-run', [CompletionResultType]::ParameterName, 'Only show the plan; nothing is written')
            [CompletionResult]::new('-y', '-y', [CompletionResultType]::ParameterName, 'Do it without asking')
            [CompletionResult]::new('--yes', '--yes', [CompletionResultType]::ParameterName, 'Do it without asking')
            [CompletionResult]::new('--accept-loss', '--accept-loss', [CompletionResultType]::ParameterName, 'Also take the steps that lose records which may have been acknowledged; the plan names their offsets')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'One JSON object a line instead of tables; docs/offline.md has their fields')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'doze;verify' {
            [CompletionResult]::new('--meta-db', '--meta-db', [CompletionResultType]::ParameterName, 'The file of topics, committed offsets and producer ids, where it is not meta.db in the data directory')
            [CompletionResult]::new('--topic', '--topic', [CompletionResultType]::ParameterName, 'Only this topic; may be given more than once')
            [CompletionResult]::new('--partition', '--partition', [CompletionResultType]::ParameterName, 'Only partitions of this number; may be given more than once')
            [CompletionResult]::new('-j', '-j', [CompletionResultType]::ParameterName, 'How many segments are read at once [default: one a core]')
            [CompletionResult]::new('--jobs', '--jobs', [CompletionResultType]::ParameterName, 'How many segments are read at once [default: one a core]')
            [CompletionResult]::new('--quick', '--quick', [CompletionResultType]::ParameterName, 'Only names, sizes, the first and last batches, the ends of indexes, and the catalog: what takes no time')
            [CompletionResult]::new('--deep', '--deep', [CompletionResultType]::ParameterName, 'Also every record through its codec: counts, offsets, timestamps, lengths, and keys where the topic is compacted')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'One JSON object a line instead of tables; docs/offline.md has their fields')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'doze;inspect' {
            [CompletionResult]::new('--meta-db', '--meta-db', [CompletionResultType]::ParameterName, 'The file of topics, committed offsets and producer ids, where it is not meta.db in the data directory')
            [CompletionResult]::new('--count', '--count', [CompletionResultType]::ParameterName, 'Read the header of every batch, so that numbers of batches and records are exact')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'One JSON object a line instead of tables; docs/offline.md has their fields')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'doze;dump-segment' {
            [CompletionResult]::new('--from-offset', '--from-offset', [CompletionResultType]::ParameterName, 'The first offset to show')
            [CompletionResult]::new('--to-offset', '--to-offset', [CompletionResultType]::ParameterName, 'The last offset to show')
            [CompletionResult]::new('--from-time', '--from-time', [CompletionResultType]::ParameterName, 'The earliest timestamp to show: milliseconds since the Unix epoch, or a date and time in UTC as in 2026-11-30T02:06:00.000Z, of which the end may be left out')
            [CompletionResult]::new('--to-time', '--to-time', [CompletionResultType]::ParameterName, 'The latest timestamp to show')
            [CompletionResult]::new('--key', '--key', [CompletionResultType]::ParameterName, 'How keys are shown')
            [CompletionResult]::new('--value', '--value', [CompletionResultType]::ParameterName, 'How values are shown, those of headers too')
            [CompletionResult]::new('--limit', '--limit', [CompletionResultType]::ParameterName, 'Stop after this many entries: records with --records, else batches or whatever else the file has')
            [CompletionResult]::new('-j', '-j', [CompletionResultType]::ParameterName, 'How many stretches of a log are decoded at once [default: one a core, at most 8]')
            [CompletionResult]::new('--jobs', '--jobs', [CompletionResultType]::ParameterName, 'How many stretches of a log are decoded at once [default: one a core, at most 8]')
            [CompletionResult]::new('--records', '--records', [CompletionResultType]::ParameterName, 'The records of each batch as well, not only its header')
            [CompletionResult]::new('--damaged', '--damaged', [CompletionResultType]::ParameterName, 'Also the records of batches whose checksum is wrong, as far as they can be read')
            [CompletionResult]::new('--all-files', '--all-files', [CompletionResultType]::ParameterName, 'Of a folder every file that can be decoded, not only the logs that count')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'One JSON object a line instead of tables; docs/offline.md has their fields')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'doze;completions' {
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
    })

    $completions.Where{ $_.CompletionText -like "$wordToComplete*" } |
        Sort-Object -Property ListItemText
}
