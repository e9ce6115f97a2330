import { expect, it } from 'vitest'
import type { Hsm } from '../../../src/hsm/hsm.ts'
import { readAnchor, writeAnchor } from '../../../src/keys/cluster/anchor.ts'
import type { Custody } from '../../../src/keys/custody.ts'
import { kekSet } from '../../../src/keys/kek/kekset.ts'
import { clock, Place, reopen, useCluster } from '../support.ts'

let hsm: Hsm
let place: Place
let custody: Custody

useCluster('kekset', (made) => {
  ;({ hsm, place, custody } = made)
})

it('whose last change the token remembers and the database hides is noticed by every worker within a minute', async () => {
  const wanted = { algorithm: 'aes256-gcm96', exportable: false, part: 'key', createdBy: 'me' } as const
  let now = 0
  await using elsewhere = await Place.at(place.url)
  using other = await reopen(hsm, elsewhere, { clock: { ...clock, monotonic: () => now } })
  await other.rotation.prove()
  await other.materials.prepare(wanted)
  // As after another worker's change that was undone in the database.
  const anchor = await readAnchor(hsm, custody.cluster.id)
  if (anchor === undefined) throw new Error('the token remembers nothing')
  const change = anchor.heads[kekSet] ?? 0
  await writeAnchor(hsm, { ...anchor, heads: { ...anchor.heads, [kekSet]: change + 1 } })
  await other.rotation.prove()
  now += 60_001
  const refusal = `as of change ${change}, change ${change + 1} was seen before`
  await expect(other.rotation.prove()).rejects.toThrow(refusal)
  await expect(other.materials.prepare(wanted)).rejects.toThrow(refusal)
  // A new reading of the set asks the token at once.
  await expect(custody.rotation.status()).rejects.toThrow(refusal)
})
