import { manyCertificates } from './certificates.ts'
import { listsOfMillion } from './lists.ts'
import { memoryOfIssuing } from './memory.ts'
import { million } from './million.ts'
import { writersOfPolicies } from './policies.ts'
import { issued, revocationsBesideEncrypts, tokens } from './revocations.ts'
import { revocationsBesideMany } from './revoked.ts'
import { smallKeysBesideLarge } from './rsa.ts'
import { shardsOfMillion } from './shards.ts'
import type { PressureBench } from './start.ts'
import { twoWorkers } from './workers.ts'

/** The cost of one kind of work to another, by the title of its line. */
export const pressures: Readonly<Record<string, (bench: PressureBench) => Promise<string>>> = {
  'encrypts beside 100 revocations a second': (bench) => revocationsBesideEncrypts(bench, tokens),
  'encrypts beside 100 revocations of certificates a second': (bench) => revocationsBesideEncrypts(bench, issued),
  'AES keys beside four clients that make rsa-4096 keys': smallKeysBesideLarge,
  '30 writers of policies in a set of 1,000': writersOfPolicies,
  'two workers beside one': twoWorkers,
  'a million keys, tokens and leases': million,
  'a million certificates': manyCertificates,
  'revocations beside a million': revocationsBesideMany,
  'a list of a million': listsOfMillion,
  '256 shards of a million': shardsOfMillion,
  'memory of an authority': memoryOfIssuing,
}
