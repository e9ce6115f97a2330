import { expect, test } from 'vitest'
import type { Logger } from '../../src/log.ts'
import { noWarnings } from '../../src/request/envelope.ts'
import { longestShortBody, type RawRequest } from '../../src/request/exchange.ts'
import { underWay } from '../../src/request/inflight.ts'
import { Recorder } from '../../src/request/recorder.ts'
import { Answer, type Caller } from '../../src/route.ts'

const log = { warn() {}, error() {} } as unknown as Logger
const caller = { policies: ['root'] } as unknown as Caller

async function answered(caller: Caller | undefined, length: number) {
  const request = underWay({ id: 'a', method: 'GET', headers: {} } as unknown as RawRequest)
  const recorder = new Recorder(request, log, log)
  recorder.setCaller(caller)
  const reply = { status: 200, headers: [], body: 'x'.repeat(length) }
  return recorder.recordResponse(new Answer({ bare: {} }), noWarnings, reply)
}

test('a long answer counts for callers only if it has one: strangers have a room of their own', async () => {
  expect((await answered(caller, longestShortBody + 1)).forCaller).toBe(true)
  expect((await answered(undefined, longestShortBody + 1)).forCaller).toBeUndefined()
})

test('a short answer counts for nobody', async () => {
  expect((await answered(caller, longestShortBody)).forCaller).toBeUndefined()
})
