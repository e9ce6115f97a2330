import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Logger } from '../log.ts'

/** The record that a node's supervisor keeps in the state directory for `strongroom reload`. */
export interface SupervisorRecord {
  /** Of the process that takes the signals. */
  readonly pid: number
  /** Its start, in clock ticks since the machine's: a later process with the same pid has another. */
  readonly startTicks: string
  /** Upgrades tried so far. */
  readonly upgrades: number
  /** Signs of life of upgrades so far: counted each time that one is requested, progresses or ends. */
  readonly steps: number
  /** The reason when the last one failed. */
  readonly failure?: string
}

const pathIn = (stateDirectory: string): string => join(stateDirectory, 'supervisor.json')

/** When a process started (proc(5), stat, field 22); undefined when it is not there, or dead and not reaped. */
export function startTicks(pid: number): string | undefined {
  try {
    // The name of the program, in parentheses, may hold anything.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\)/s, '').trim().split(' ')
    return /[ZX]/.test(fields[0] ?? '') ? undefined : fields[19]
  } catch {
    return undefined
  }
}

/** The record of a living supervisor, if any. */
export function readRecord(stateDirectory: string): SupervisorRecord | undefined {
  try {
    const record: SupervisorRecord = JSON.parse(readFileSync(pathIn(stateDirectory), 'utf8'))
    return record.startTicks === startTicks(record.pid) ? record : undefined
  } catch {
    return undefined
  }
}

/** The record serves `strongroom reload` alone: a full disk must end neither the server nor an upgrade. */
function write(stateDirectory: string, record: SupervisorRecord, log: Logger): void {
  const path = pathIn(stateDirectory)
  try {
    writeFileSync(`${path}.new`, JSON.stringify(record), { mode: 0o600 })
    renameSync(`${path}.new`, path)
  } catch (error) {
    log.error({ err: error }, 'the record for strongroom reload cannot be written')
  }
}

/** This process takes the signals of its node. A failure to record it is logged. */
export function recordStart(stateDirectory: string, log: Logger): void {
  write(stateDirectory, { pid: process.pid, startTicks: startTicks(process.pid) ?? '', upgrades: 0, steps: 0 }, log)
}

/** An upgrade begins, or goes on. A failure to record it is logged. */
export function recordStep(stateDirectory: string, log: Logger): void {
  const record = readRecord(stateDirectory)
  if (record) write(stateDirectory, { ...record, steps: record.steps + 1 }, log)
}

/** An upgrade has ended, with the reason when it failed. A failure to record it is logged. */
export function recordUpgrade(stateDirectory: string, failure: string | undefined, log: Logger): void {
  const record = readRecord(stateDirectory)
  if (record === undefined) return
  const { failure: _last, ...rest } = record
  const next = { ...rest, upgrades: record.upgrades + 1, steps: record.steps + 1 }
  write(stateDirectory, failure === undefined ? next : { ...next, failure }, log)
}
