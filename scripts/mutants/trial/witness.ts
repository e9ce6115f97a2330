/**
 * Setup file of the rehearsal: writes down which functions a test file runs, in its own process and in every node that
 * it starts (Node hands NODE_V8_COVERAGE on to children, whatever environment they are given).
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import { join, relative } from 'node:path'
import { afterAll, expect } from 'vitest'

const { STRONGROOM_MUTANTS_WITNESS: directory = '' } = process.env
const file = relative(process.cwd(), expect.getState().testPath ?? '')
const own = join(directory, encodeURIComponent(file))
mkdirSync(own, { recursive: true })
process.env.NODE_V8_COVERAGE = own

const session = new Session()
session.connect()
await session.post('Profiler.enable')
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })

// Registered first, so it runs after the file's own.
afterAll(async () => {
  writeFileSync(join(own, 'own.json'), JSON.stringify(await session.post('Profiler.takePreciseCoverage')))
})
