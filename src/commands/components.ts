import { readFileSync } from 'node:fs'
import { openToEverybody } from '../config/secrets.ts'
import { type Component, combine, componentCheckValue, kekBytes, parseComponent } from '../keys/kek/components.ts'
import { type KekPurpose, kekPurposes } from '../keys/tables.ts'
import type { MaybePromise } from '../route.ts'

/** One custodian's sheet: a component of each KEK. */
export type Sheet = Readonly<Record<KekPurpose, Component>>

export type Components = Readonly<Record<KekPurpose, readonly Component[]>>

/**
 * Reads a custodian's file: one line for each KEK, `use <64 hex digits> <check value>`; empty lines and # lines are
 * skipped.
 * @throws Error naming the line by its purpose or number, never by its digits
 */
export function parseSheet(text: string): Sheet {
  const found = new Map<string, Component>()
  for (const [index, line] of text.split('\n').entries()) {
    if (/^\s*(#|$)/.test(line)) continue
    const [, purpose = '', digits = ''] = /^\s*([a-z]+)\s+(.*)$/.exec(line) ?? []
    if (!(kekPurposes as readonly string[]).includes(purpose)) {
      throw new Error(`line ${index + 1} does not begin with one of ${kekPurposes.join(', ')}`)
    }
    if (found.has(purpose)) throw new Error(`the ${purpose} component occurs twice`)
    found.set(purpose, checked(purpose, digits))
  }
  const of = (purpose: KekPurpose): Component => {
    const component = found.get(purpose)
    if (component === undefined) throw new Error(`the ${purpose} component is missing`)
    return component
  }
  return { use: of('use'), export: of('export'), open: of('open'), system: of('system') }
}

/** Custodians' files, one each. @param warn is told of a file that everybody may read @throws Error naming the file */
export function sheetsFromFiles(paths: readonly string[], warn: (text: string) => void = console.error): Sheet[] {
  return paths.map((path) => {
    try {
      const sheet = parseSheet(readFileSync(path, 'utf8'))
      const open = openToEverybody(path)
      if (open !== undefined) warn(`warning: ${open}`)
      return sheet
    } catch (error) {
      throw new Error(`${path}: ${(error as Error).message}`)
    }
  })
}

type Ask = (question: string) => Promise<string>

/**
 * Asks each custodian for the component of one KEK. A mistyped one is asked for again: its check value reveals it at
 * once. So is one that was given before.
 * @param ask reads a line without echo
 */
export async function componentsFromPrompt(
  purpose: KekPurpose,
  custodians: number,
  ask: Ask,
  say: (text: string) => void,
): Promise<Component[]> {
  const components: Component[] = []
  while (components.length < custodians) {
    const digits = await ask(`custodian ${components.length + 1}, ${purpose} component and check value: `)
    try {
      const component = checked(purpose, digits)
      if (components.length > 0) combine([...components, component]).fill(0)
      components.push(component)
    } catch (error) {
      say((error as Error).message)
    }
  }
  return components
}

/** The same for every KEK, one after the other. */
export async function allFromPrompt(custodians: number, ask: Ask, say: (text: string) => void): Promise<Components> {
  const of = async (purpose: KekPurpose) => combinable(await componentsFromPrompt(purpose, custodians, ask, say))
  return { use: await of('use'), export: await of('export'), open: await of('open'), system: await of('system') }
}

/** The components of each KEK from custodians' sheets. @throws Error when they cannot be combined */
export function componentsFromSheets(sheets: readonly Sheet[]): Components {
  const of = (purpose: KekPurpose) => combinable(sheets.map((sheet) => sheet[purpose]))
  return { use: of('use'), export: of('export'), open: of('open'), system: of('system') }
}

/** @throws Error when there are fewer than two, or one is given twice: now, not in the middle of making keys */
function combinable(components: readonly Component[]): readonly Component[] {
  combine(components).fill(0)
  return components
}

/** A new custodian's sheet as text. @param random draws bytes, which are wiped */
export async function newSheet(random: (bytes: number) => MaybePromise<Buffer>): Promise<string> {
  const lines: string[] = []
  for (const purpose of kekPurposes) {
    const bytes = await random(kekBytes)
    lines.push(`${purpose} ${bytes.toString('hex')} ${componentCheckValue(bytes).toString('hex')}`)
    bytes.fill(0)
  }
  return lines.join('\n')
}

function checked(purpose: string, digits: string): Component {
  const component = parseComponent(digits)
  if (!componentCheckValue(component.bytes).equals(component.checkValue)) {
    throw new Error(`the ${purpose} component does not match its check value`)
  }
  return component
}
