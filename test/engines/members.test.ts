import { setTimeout as delay } from 'node:timers/promises'
import { createConnection } from 'mysql2/promise'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Connection } from '../../src/store/pool/connection.ts'
import { parseTargets } from '../../src/store/pool/target.ts'
import { type Bench, createBench } from '../store/support.ts'
import { engine, inGroup } from '../support/engine.ts'
import { type Far, farMember, nodes, numberOf, stateOf, tell, writeNear } from './group.ts'

/** Members of Group Replication that stop, leave or are closed for writes: each may refuse, but not answer "old". */

const timeouts = { connectMilliseconds: 3000, statementMilliseconds: 60_000 }

describe.runIf(inGroup)('a member of Group Replication', () => {
  let bench: Bench
  beforeEach(async () => {
    bench = await createBench()
  })
  afterEach(async () => {
    nodes('mend')
    await bench[Symbol.asyncDispose]()
  }, 240_000)

  const far = async (): Promise<Far> => {
    const member = await farMember(bench, engine === 'single')
    expect(await member.answers()).toEqual(Array(5).fill('old'))
    return member
  }
  /** Until every way through the member, which is whole again, reads the new text, none reads the old one. */
  const neverOld = async (member: Far): Promise<void> => {
    for (;;) {
      const answers = await member.answers()
      expect(answers).not.toContain('old')
      if (engine === 'single' || answers.every((answer) => answer === 'new')) return
      nodes('mend')
    }
  }
  /** A cached value that nobody can have changed is right until its lease is over. */
  const allRefused = async (member: Far): Promise<void> => {
    while (!(await member.answers()).every((answer) => answer === 503)) await delay(100)
  }

  test('applies earlier commits of others before it answers a question that names a table', async () => {
    const url = bench.nodeUrl(2)
    const [target] = parseTargets(url)
    if (target === undefined) throw new Error('no third member')
    const connection = await Connection.open(target, undefined, timeouts)
    const [[id] = []] = await connection.rows('SELECT CONNECTION_ID()')
    // Not by a session of the store's: its UNLOCK would wait too.
    const holder = await createConnection(url)
    await holder.query('LOCK TABLES usage_counters READ')
    await bench.sql("INSERT INTO usage_counters (material, used) VALUES ('x', 1)")
    // This is no such question: it is answered although the commit is not applied.
    expect(await connection.rows('SELECT @@read_only')).toHaveLength(1)
    const asked = connection.ask('1 FROM `schema`').catch((error: Error) => error.message)
    const state = `SELECT STATE FROM information_schema.PROCESSLIST WHERE ID = ${id}`
    while ((await bench.sql(state, [], url))[0]?.STATE !== 'Executing hook on transaction begin.') await delay(50)
    await holder.query('UNLOCK TABLES')
    expect(await asked).toEqual(engine === 'multi' ? [[1]] : 'the database node takes no writes')
    for (const one of [connection, holder]) await one.end()
  }, 120_000)

  test('that was stopped, expelled and continued', async () => {
    const member = await far()
    nodes('pause', numberOf(member.url))
    await writeNear(member, 'new')
    nodes('cont', numberOf(member.url))
    await neverOld(member)
  }, 300_000)

  // With one primary, a member that cannot apply the primary's changes takes no writes before that either.
  test.runIf(engine === 'multi')(
    'that left in the state ERROR, even if its owner opens it for writes',
    async () => {
      const member = await far()
      const here = (...statements: readonly string[]) => tell(member.url, 'SET SESSION sql_log_bin = 0', ...statements)
      await here('RENAME TABLE policies TO policies_elsewhere')
      await writeNear(member, 'new')
      while ((await stateOf(member.url)) !== 'ERROR') await delay(50)
      await tell(member.url, 'SET GLOBAL super_read_only = OFF', 'SET GLOBAL read_only = OFF')
      await here('RENAME TABLE policies_elsewhere TO policies')
      expect(await member.answers()).toEqual(Array(5).fill(503))
      await neverOld(member)
    },
    300_000,
  )

  test('whose owner closes it for writes', async () => {
    const member = await far()
    await tell(member.url, 'SET GLOBAL super_read_only = ON')
    try {
      if (engine === 'multi') {
        await writeNear(member, 'new')
        expect(await member.answers()).not.toContain('old')
      }
      await allRefused(member)
    } finally {
      await tell(member.url, 'SET GLOBAL super_read_only = OFF', 'SET GLOBAL read_only = OFF')
    }
  }, 300_000)

  test('that has lost the two others refuses until they are back', async () => {
    const member = await far()
    const others = [0, 1, 2].map((n) => bench.nodeUrl(n)).filter((url) => url !== member.url)
    for (const url of others) nodes('pause', numberOf(url))
    await allRefused(member)
    for (const url of others) nodes('cont', numberOf(url))
    nodes('mend')
    while ((await member.answers()).includes(503)) await delay(100)
  }, 300_000)
})
