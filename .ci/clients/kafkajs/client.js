// kafkajs as a client under check; what it has to do is told in ../README.md.
const { Kafka, CompressionTypes, CompressionCodecs, logLevel } = require('kafkajs')
const snappy = require('snappyjs')
const lz4 = require('lz4js')
const xxh32 = require('lz4js/xxh32')
const zstd = require('@bokuweb/zstd-wasm')

// Snappy in Kafka is a stream of blocks with a header of its own, or (other clients) one bare block.
const XERIAL = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0, 0, 0, 0, 1, 0, 0, 0, 1])
CompressionCodecs[CompressionTypes.Snappy] = () => ({
  async compress({ buffer }) {
    const block = Buffer.from(snappy.compress(buffer))
    const length = Buffer.alloc(4)
    length.writeUInt32BE(block.length)
    return Buffer.concat([XERIAL, length, block])
  },
  async decompress(buffer) {
    if (!buffer.subarray(0, 8).equals(XERIAL.subarray(0, 8))) return Buffer.from(snappy.uncompress(buffer))
    const parts = []
    for (let at = 16; at < buffer.length; ) {
      const length = buffer.readUInt32BE(at)
      parts.push(Buffer.from(snappy.uncompress(buffer.subarray(at + 4, at + 4 + length))))
      at += 4 + length
    }
    return Buffer.concat(parts)
  },
})
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  async compress({ buffer }) {
    // Kafka reads frames of independent blocks only. A frame this small has one block, which lz4js does not say, so it is said here.
    const frame = Buffer.from(lz4.compress(buffer))
    frame[4] |= 0x20
    frame[6] = xxh32.hash(0, frame, 4, 2) >> 8
    return frame
  },
  decompress: async buffer => Buffer.from(lz4.decompress(buffer)),
})
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async ({ buffer }) => Buffer.from(zstd.compress(buffer, 3)),
  decompress: async buffer => Buffer.from(zstd.decompress(buffer)),
})
const CODECS = {
  none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4, zstd: CompressionTypes.ZSTD,
}

// kafkajs cannot send a header that is null, so this client does without the one that the others send.
const key = i => (i % 50 === 49 ? null : `key-${i % 101}`)
const value = i => (i % 77 === 76 ? null : `${i}:` + 'abcdefghijklmnop'.repeat(i % 40))
const headers = i => [{ a: [String(i), 'again'] }, {}, { empty: '', z: 'zürich' }][i % 3]
const text = data => (data === null || data === undefined ? 'NULL' : data.toString())
const tags = all => Object.entries(all).flatMap(([name, data]) => (Array.isArray(data) ? data : [data]).map(d => `${name}=${text(d)}`))

const client = bootstrap => new Kafka({ clientId: 'check', brokers: [bootstrap], logLevel: logLevel.ERROR })

async function create(bootstrap, topic, partitions) {
  const admin = client(bootstrap).admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic, numPartitions: Number(partitions), replicationFactor: 1 }] })
  await admin.disconnect()
}

async function produce(bootstrap, topic, first, count, codec, acks, idempotent) {
  const producer = client(bootstrap).producer({ idempotent: idempotent === 'true', maxInFlightRequests: 1 })
  await producer.connect()
  const end = Number(first) + Number(count)
  for (let i = Number(first); i < end; i += 100) {
    const messages = []
    for (let j = i; j < Math.min(end, i + 100); j++) messages.push({ key: key(j), value: value(j), headers: headers(j) })
    await producer.send({ topic, messages, acks: acks === 'all' ? -1 : Number(acks), compression: CODECS[codec] })
  }
  await producer.disconnect()
}

async function consume(bootstrap, topic, group, wanted, idleMs) {
  const consumer = client(bootstrap).consumer({ groupId: group, maxWaitTimeInMs: 200, maxBytesPerPartition: 20000 })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  let got = 0
  let last = Date.now()
  let busy = 0
  await consumer.run({
    autoCommit: false,
    eachBatchAutoResolve: false,
    eachBatch: async ({ batch, resolveOffset, heartbeat }) => {
      if (got >= Number(wanted)) return
      busy++
      for (const m of batch.messages) {
        console.log([batch.partition, m.offset, text(m.key), text(m.value), tags(m.headers).join(',')].join('\t'))
        resolveOffset(m.offset)
        got++
      }
      await consumer.commitOffsets([{ topic, partition: batch.partition, offset: String(BigInt(batch.lastOffset()) + 1n) }])
      await heartbeat()
      last = Date.now()
      busy--
    },
  })
  while (busy || (got < Number(wanted) && Date.now() - last < Number(idleMs))) await new Promise(r => setTimeout(r, 20))
  await consumer.disconnect()
}

async function main([command, ...args]) {
  await zstd.init()
  await { create, produce, consume }[command](...args)
}
main(process.argv.slice(2)).then(() => process.exit(0), error => { console.error(error); process.exit(1) })
