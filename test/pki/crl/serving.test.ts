import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { writePem } from '../../../src/crypto/pem.ts'
import { Contents } from '../../../src/engines/pki/publication/contents.ts'
import { ListCache } from '../../../src/engines/pki/publication/listcache.ts'
import { PublishedCrl } from '../../../src/engines/pki/publication/published.ts'
import { Streams } from '../../../src/engines/pki/publication/streams.ts'
import { Stream } from '../../../src/stream.ts'
import { type Cluster, useCluster } from '../../keys/support.ts'
import { type BuilderNode, createCa, createSet, nodeAt, read, revoke, serialsOf, targetOf } from './world.ts'

let cluster: Cluster
let node: BuilderNode
useCluster('crlserving', async (begun) => {
  cluster = begun
  await createSet(begun.place.database)
  node = nodeAt(begun.place.database)
})

/** A mount with a list of `entries` entries, its CA, and the cache that finds it. */
async function publish(entries: number) {
  const { database, builder, site } = node
  const [ca, mount] = [await createCa(cluster), randomUUID()]
  const rows = entries === 0 ? [] : await revoke(database, ca.crlIssuer, entries)
  const { complete } = await builder.build(targetOf(ca, mount))
  const cache = new ListCache({ database, lists: builder.lists, site })
  const query = { mount, crlIssuer: ca.crlIssuer, scope: 'local', kind: 'complete' } as const
  return { ca, mount, rows, complete, cache, query }
}

async function whole(body: Buffer | Stream): Promise<Buffer> {
  if (!(body instanceof Stream)) return body
  const pieces: Uint8Array[] = []
  for await (const piece of body.pieces()) pieces.push(piece)
  return Buffer.concat(pieces)
}

describe('the cache of lists', () => {
  test('has the list that is out, and the next one as soon as it is', async () => {
    const { ca, mount, cache, query, complete } = await publish(1)
    expect(await cache.find(query)).toEqual(complete)
    expect(await cache.find(query)).toBe(await cache.find(query))
    const next = await node.builder.build(targetOf(ca, mount))
    expect(await cache.find(query)).toEqual(next.complete)
    expect(await cache.read(query)).toEqual(next.complete)
  })

  test('remembers that there is no list, until there is one', async () => {
    const { ca, cache, query } = await publish(0)
    const other = { ...query, mount: randomUUID() }
    expect(await cache.find(other)).toBeUndefined()
    await node.builder.build(targetOf(ca, other.mount))
    expect(await cache.find(other)).toMatchObject({ mount: other.mount })
  })

  test('refuses an older list that was put back, and one that is gone', async () => {
    const { ca, mount, complete, query } = await publish(1)
    const cold = () => new ListCache({ database: node.database, lists: node.builder.lists, site: node.site })
    const sql = (statement: string) => cluster.place.sql(statement)
    await sql(`CREATE TABLE kept AS SELECT * FROM pki_crls WHERE id = '${complete.id}'`)
    const { complete: current } = await node.builder.build(targetOf(ca, mount))
    await sql(`DELETE FROM pki_crls WHERE id = '${current.id}'`)
    await expect(cold().find(query)).rejects.toThrow('number 2 was published, it is gone')
    await sql('INSERT INTO pki_crls SELECT * FROM kept')
    await expect(cold().find(query)).rejects.toThrow('number 2 was published, it has number 1')
  })
})

describe('what is sent of a list', () => {
  test('that is short is held in every form', async () => {
    const { ca, rows, complete } = await publish(3)
    const contents = new Contents({ segments: node.builder.segments })
    const list = new PublishedCrl(complete, { contents, streams: new Streams(node.clock) })
    const der = await whole(await list.der())
    expect(read(der, ca).serials).toEqual(serialsOf(rows))
    expect(await list.der()).toBe(der)
    const pem = `${writePem('X509 CRL', der)}\n`
    expect((await whole(await list.pem(true))).toString()).toBe(pem)
    expect((await whole(await list.pem(false))).toString()).toBe(pem.trimEnd())
    for (const newlineAtEnd of [true, false]) {
      const text = await list.pemInJson(newlineAtEnd)
      expect(text.content).toEqual({ sha256: complete.sha256.toString('hex'), length: der.length })
      const sent = await whole(text.inJson())
      expect(JSON.parse(`"${sent.toString()}"`)).toBe(newlineAtEnd ? pem : pem.trimEnd())
    }
  })

  test('that is long is streamed in every form, a segment at a time', async () => {
    const { ca, rows, complete } = await publish(4100)
    expect(complete.parts).toHaveLength(3)
    const contents = new Contents({ segments: node.builder.segments, longest: 1000 })
    const list = new PublishedCrl(complete, { contents, streams: new Streams(node.clock) })
    const stream = await list.der()
    expect(stream).toBeInstanceOf(Stream)
    expect(stream.length).toBe(complete.bytes)
    const der = await whole(stream)
    expect(read(der, ca).serials).toEqual(serialsOf(rows))
    const pem = `${writePem('X509 CRL', der)}\n`
    expect((await whole(await list.pem(true))).toString()).toBe(pem)
    const text = await list.pemInJson(false)
    expect(JSON.parse(`"${(await whole(text.inJson())).toString()}"`)).toBe(pem.trimEnd())
  })

  test('that is long has a bounded number of readers, while lists are built and short ones read', async () => {
    const { ca, mount, complete, cache, query } = await publish(4100)
    const streams = new Streams(node.clock, 2)
    const sources = { contents: new Contents({ segments: node.builder.segments, longest: 1000 }), streams }
    const list = new PublishedCrl(complete, sources)
    const reserved = async (body: unknown): Promise<Stream> => {
      const stream = (await body) as Stream
      stream.reserve()
      return stream
    }
    const readers = [await reserved(list.der()), await reserved(list.pem(true))].map((stream) => stream.pieces())
    for (const reader of readers) await reader.next()
    await expect(reserved(list.der())).rejects.toMatchObject({ status: 503, retryAfterSeconds: 5 })
    await revoke(node.database, ca.crlIssuer, 1)
    const next = await node.builder.build(targetOf(ca, mount))
    expect(await cache.find(query)).toEqual(next.complete)
    const short = await publish(1)
    expect(await new PublishedCrl(short.complete, sources).der()).toBeInstanceOf(Buffer)
    // Readers that began with the old list end with it.
    for (const reader of readers) for await (const _ of reader);
    expect(read(await whole(await list.der()), ca).serials).toHaveLength(4100)
  })

  test('breaks off at a segment that was edited', async () => {
    const { complete } = await publish(2100)
    await cluster.place.sql('UPDATE pki_segments SET entries = ? WHERE id = ?', [
      Buffer.from('3000', 'hex'),
      complete.parts[1]?.segment ?? '',
    ])
    const contents = new Contents({ segments: node.builder.segments })
    await expect(contents.bytes(complete, 'der')).rejects.toThrow('the seal is broken')
    const long = new Contents({ segments: node.builder.segments, longest: 1000 })
    const list = new PublishedCrl(complete, { contents: long, streams: new Streams(node.clock) })
    await expect(whole(await list.der())).rejects.toThrow('the seal is broken')
  })
})
