import { describe, expect, test } from 'vitest'
import { readCertificate } from '../../src/x509/certificate.ts'
import {
  type Authority,
  chainFinder,
  isSelfSigned,
  isSignedBy,
  searchParents,
  type Verification,
  verifyManualChain,
} from '../../src/x509/chain.ts'
import { type Ca, ecPair, makeCa, useOpenssl } from './authority.ts'

const openssl = useOpenssl()
const of = (id: string, { certificate }: Ca, manualChain?: readonly string[]): Authority => ({
  id,
  certificate,
  manualChain,
})
/** The chain of every certificate of a set. */
function buildChains(
  list: readonly Authority[],
  verified: Verification = isSignedBy,
): ReadonlyMap<string, readonly string[]> {
  const search = searchParents(list, verified)
  let step = search.next()
  while (!step.done) step = search.next()
  const find = chainFinder(list, step.value)
  return new Map(list.map(({ id }) => [id, find(id)]))
}
const chainsOf = (...list: readonly Authority[]) => Object.fromEntries(buildChains(list))

const root = makeCa('Root')
const middle = makeCa('Middle', root)
const low = makeCa('Low', middle)

describe('a chain', () => {
  test('goes up to the root, or ends where parents are missing', () => {
    expect(chainsOf(of('a', low), of('b', root), of('c', middle))).toEqual({
      a: ['a', 'c', 'b'],
      b: ['b'],
      c: ['c', 'b'],
    })
    expect(chainsOf(of('a', low), of('b', root))).toEqual({ a: ['a'], b: ['b'] })
    expect(chainsOf()).toEqual({})
  })

  test('includes the cross-signs of a root: ra → [ra, xa, rb], xa → [xa, rb], rb → [rb]', () => {
    const [ra, rb] = [makeCa('A'), makeCa('B')]
    const xa = makeCa('A', rb, { key: ra.key })
    expect(chainsOf(of('ra', ra), of('xa', xa), of('rb', rb))).toEqual({
      ra: ['ra', 'xa', 'rb'],
      xa: ['xa', 'rb'],
      rb: ['rb'],
    })
  })

  test('takes self-issued parents first, then by id from the end, for any order of the set', () => {
    const [ra, rb, rc] = [makeCa('A'), makeCa('B'), makeCa('C')]
    const [xb, xc] = [makeCa('A', rb, { key: ra.key }), makeCa('A', rc, { key: ra.key })]
    const child = makeCa('Child', ra)
    const set = [of('1', child), of('2', ra), of('3', xb), of('4', xc), of('5', rb), of('6', rc)]
    for (const list of [set, set.toReversed()]) {
      expect(buildChains(list).get('1')).toEqual(['1', '2', '4', '6', '3', '5'])
    }
  })

  test('needs a signature, not only a name', () => {
    const impostor = makeCa('Root')
    expect(chainsOf(of('a', middle), of('b', impostor))).toEqual({ a: ['a'], b: ['b'] })
    expect(chainsOf(of('a', middle), of('b', impostor), of('c', root))).toMatchObject({ a: ['a', 'c'] })
  })

  test('is never built across a signature over SHA-1, though its root may have one', () => {
    const subject = ['-subj', '/CN=Old', '-days', '9', '-sha1', '-nodes', '-newkey', 'rsa:2048', '-outform', 'der']
    const caFile = openssl.put('old.der', '')
    const keyFile = openssl.put('old.key', '')
    openssl.run(['req', '-x509', ...subject, '-keyout', keyFile, '-out', caFile])
    const old = readCertificate(openssl.read('old.der'))
    const request = [
      'req',
      '-new',
      '-subj',
      '/CN=New',
      '-nodes',
      '-newkey',
      'rsa:2048',
      '-keyout',
      openssl.put('new.key', ''),
    ]
    const csr = openssl.put('new.csr', openssl.run(request))
    const extension = openssl.put('ca.ext', 'basicConstraints=critical,CA:TRUE\n')
    const sign = [
      'x509',
      '-req',
      '-in',
      csr,
      '-CA',
      caFile,
      '-CAkey',
      keyFile,
      '-CAcreateserial',
      '-extfile',
      extension,
    ]
    const child = (hash: string) => {
      const out = openssl.put(`${hash}.der`, '')
      openssl.run([...sign, `-${hash}`, '-outform', 'der', '-out', out])
      return readCertificate(openssl.read(`${hash}.der`))
    }
    const chain = (hash: string) =>
      buildChains([
        { id: 'child', certificate: child(hash) },
        { id: 'old', certificate: old },
      ])
    expect(chain('sha1').get('child')).toEqual(['child'])
    expect(chain('sha256').get('child')).toEqual(['child', 'old'])
    expect([isSelfSigned(old), isSignedBy(old, old)]).toEqual([true, false])
  })

  test('of certificates that sign one another in a circle ends', () => {
    const [keyA, keyB] = [ecPair(), ecPair()]
    const [rootA, rootB] = [makeCa('A', undefined, { key: keyA }), makeCa('B', undefined, { key: keyB })]
    const [a, b] = [makeCa('A', rootB, { key: keyA }), makeCa('B', rootA, { key: keyB })]
    expect(chainsOf(of('a', a), of('b', b))).toEqual({ a: ['a', 'b'], b: ['b', 'a'] })
  })

  test('takes each of two hundred cross-signed twins once, with one verification for each of them', () => {
    const key = ecPair()
    const above = makeCa('Above')
    const own = makeCa('Twin', undefined, { key })
    const twins = Array.from({ length: 200 }, (_, index) => makeCa('Twin', index % 2 === 0 ? own : above, { key }))
    const set = [of('above', above), ...twins.map((twin, index) => of(`t${index}`, twin))]
    let verifications = 0
    const chains = buildChains(set, (child, parent) => {
      verifications++
      return isSignedBy(child, parent)
    })
    expect(verifications).toBe(201)
    for (const { id } of set.slice(1, 20)) {
      const chain = chains.get(id) ?? []
      const selfIssued = Number(id.slice(1)) % 2 === 0
      expect(chain[0]).toBe(id)
      expect(new Set(chain).size).toBe(chain.length)
      expect(chain.length).toBe(selfIssued ? 201 : 2)
    }
  })

  test('of two hundred roots of one name costs one verification for each of them, and few for one without a parent', () => {
    const set = Array.from({ length: 200 }, (_, index) => of(`r${index}`, makeCa('Root')))
    const child = makeCa('Child', makeCa('Root', undefined, { key: ecPair() }))
    let verifications = 0
    const chains = buildChains([...set, of('child', child)], (lower, upper) => {
      verifications++
      return isSignedBy(lower, upper)
    })
    // One for each root by its own key; the child, whose parent is missing, tries some keys of the name.
    expect(verifications).toBe(264)
    expect([chains.get('r7'), chains.get('child')]).toEqual([['r7'], ['child']])
  })

  test('finds a parent without key identifier, and a parent of which one certificate has it', () => {
    const [root, key] = [makeCa('Root'), ecPair()]
    const bare = { ...root, certificate: { ...root.certificate, subjectKeyId: undefined } }
    const twin = makeCa('Root', undefined, { key: root.key })
    const child = makeCa('Child', root, { key })
    const other = { ...twin, certificate: { ...twin.certificate, subjectKeyId: Buffer.from('another') } }
    expect(buildChains([of('c', child), of('r', bare)]).get('c')).toEqual(['c', 'r'])
    expect(buildChains([of('c', child), of('o', other)]).get('c')).toEqual(['c', 'o'])
    expect(buildChains([of('c', child), of('o', other), of('r', root)]).get('c')).toEqual(['c', 'r', 'o'])
  })

  test('finds a parent whose identifier its child does not name: the signature decides (RFC 5280 section 6)', () => {
    const root = makeCa('Root')
    const renamed = { ...root, certificate: { ...root.certificate, subjectKeyId: Buffer.from('another') } }
    const impostor = makeCa('Root')
    const posing = {
      ...impostor,
      certificate: { ...impostor.certificate, subjectKeyId: root.certificate.subjectKeyId },
    }
    const child = makeCa('Child', root)
    const set = [of('c', child), of('p', posing), of('r', renamed)]
    const asked: (Buffer | undefined)[] = []
    const chains = buildChains(set, (lower, upper) => {
      if (lower === child.certificate) asked.push(upper.subjectKeyId)
      return isSignedBy(lower, upper)
    })
    expect(chains.get('c')).toEqual(['c', 'r'])
    expect(asked).toEqual([posing.certificate.subjectKeyId, renamed.certificate.subjectKeyId])
  })

  test('of many layers, each cross-signed by all of the layer above, costs no more than the set has certificates', () => {
    // Forty layers of three twins: 3⁴⁰ ways to the top.
    let layer: readonly Ca[] = [makeCa('Layer 0')]
    const set: Authority[] = layer.map((ca) => of('0', ca))
    for (let depth = 1; depth <= 40; depth++) {
      const key = ecPair()
      layer = Array.from({ length: 3 }, () => makeCa(`Layer ${depth}`, layer[0], { key }))
      set.push(...layer.map((ca, index) => of(`${depth}/${index}`, ca)))
    }
    const chains = buildChains(set)
    expect(chains.get('40/1')).toHaveLength(1 + 3 * 39 + 1)
  })
})

describe('a manual chain', () => {
  test('is used as it stands, without missing ids, and chains below build on it', () => {
    const other = makeCa('Other')
    const set = [
      of('low', low),
      of('middle', middle, ['middle', 'other', 'gone', 'other']),
      of('root', root),
      of('other', other),
    ]
    expect(chainsOf(...set)).toEqual({
      low: ['low', 'middle', 'other'],
      middle: ['middle', 'other', 'other'],
      root: ['root'],
      other: ['other'],
    })
  })

  test.each([
    ['the whole way', [low, middle, root], undefined],
    ['a root alone', [root], undefined],
    ['nothing', [], 'empty'],
    ['another at its beginning', [middle, root], 'begin with the issuer'],
    ['a gap', [low, root], 'certificate 2 of the chain did not sign'],
    ['no root', [low, middle], 'self-signed'],
    ['more behind the root', [low, middle, root, makeCa('Other')], 'certificate 4 of the chain did not sign'],
    ['a root of the same name', [low, middle, makeCa('Root')], 'certificate 3 of the chain did not sign'],
  ])('of %s', (_, chain, why) => {
    const issuer = chain.length === 1 ? root : low
    const found = verifyManualChain(
      issuer.certificate,
      chain.map(({ certificate }) => certificate),
    )
    if (why === undefined) expect(found).toBeUndefined()
    else expect(found).toContain(why)
  })
})
