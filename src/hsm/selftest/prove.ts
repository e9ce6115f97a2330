import type { Ability, Findings } from '../capabilities.ts'
import { answer, createBench, type Run } from './bench.ts'
import { curveProbes } from './curves.ts'
import { probeReadable } from './readable.ts'
import { probeRsa } from './rsa.ts'
import { findForgedTag, findHmacKeys, findKwp, findMaxSecretBytes, learnTokenObjects, secretProbes } from './secrets.ts'

/**
 * Finds out a token's abilities by trying them: mechanism lists promise too much (SoftHSM lists OAEP and refuses
 * SHA-256, NSS lists HKDF and refuses its parameters). Takes one RSA-2048 and one RSA-1024 key generation; leaves
 * nothing behind.
 * @throws Error when the token lacks something that every key here depends on (RFC 5649, persistent AES keys)
 */
export async function prove(run: Run): Promise<Findings> {
  const bench = createBench(run)
  const kwp = await findKwp(bench)
  if (kwp === undefined)
    throw new Error('the token lacks AES key wrap with padding (RFC 5649), without which it is no use')
  await learnTokenObjects(bench)
  await bench.clear()
  const proven: Ability[] = []
  for (const [ability, probe] of secretProbes(kwp)) {
    if (await answer(() => probe(bench))) proven.push(ability)
    await bench.clear()
  }
  const maxSecretBytes = await findMaxSecretBytes(bench, kwp)
  if (maxSecretBytes > 0) proven.push('wrap-generic')
  await bench.clear()
  const hmacKeys = await findHmacKeys(bench)
  const forgedTag = await answer(() => findForgedTag(bench))
  await bench.clear()
  for (const probe of [...curveProbes, probeRsa, probeReadable]) {
    proven.push(...(await probe(bench, kwp)))
    await bench.clear()
  }
  return { kwp, proven, maxSecretBytes, hmacKeys, forgedTag, dialect: bench.dialect }
}
