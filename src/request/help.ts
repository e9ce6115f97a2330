import type { Data, Method, Mount, Route, Routes } from '../route.ts'
import type { Dispatch } from './dispatch.ts'
import { unsupportedPath } from './match.ts'
import { describeApi, fieldsOf } from './openapi/document.ts'

const methods: readonly Method[] = ['GET', 'LIST', 'POST', 'PATCH', 'DELETE', 'HEAD']

/** Whether a query asks for a description of the path: `?help=1`. */
export const asksForHelp = (query: URLSearchParams | undefined): boolean => !!query?.get('help')

/**
 * The answer of `?help=1`: the paths of a mount, or the fields of a path.
 * @param path canonical, below the mount
 * @throws {ApiError} 404 for a path that no route of the mount has
 */
export function helpOf(mount: Mount, routes: Routes<unknown>, dispatch: Dispatch, path: string): Data {
  const chosen = path === '' ? routes : routesAt(dispatch, routes, path)
  if (chosen.length === 0) throw unsupportedPath()
  const prefix = mount.path.slice(0, -1)
  const openapi = describeApi([{ prefix, tag: mount.type, routes: chosen }], '')
  const help = path === '' ? overview(mount, routes) : chosen.map((route) => full(route, mount)).join('\n\n')
  return { help: `${help}\n`, see_also: [], openapi }
}

function routesAt(dispatch: Dispatch, routes: Routes<unknown>, path: string): Route<unknown>[] {
  const found = new Set(methods.map((method) => dispatch(method, path).endpoint.route))
  return [...found].filter((route) => routes.includes(route))
}

function overview(mount: Mount, routes: Routes<unknown>): string {
  const lines = routes.map((route) => `    ${headline(route, mount)}\n        ${route.about}`)
  return `## DESCRIPTION\n\nThe ${mount.type} engine at ${mount.path}.\n\n## PATHS\n\n${lines.join('\n\n')}`
}

const headline = ({ method, path }: Route<unknown>, mount: Mount): string => `${method} ${mount.path}${path}`

const words: Readonly<Record<string, string>> = { raw: 'any', commaList: 'list', commaText: 'string' }
const rights = { public: 'Needs no token.', token: '', sudo: 'Needs the capability "sudo" too.' } as const

function full(route: Route<unknown>, mount: Mount): string {
  const { about, access, bytes, answers } = route
  const fields = fieldsOf(route).map(([name, { lenient, description, aliases = [] }]) => {
    const others = aliases.length === 0 ? '' : `; also: ${aliases.join(', ')}`
    return `    ${name} (type: ${words[lenient] ?? lenient}${others})\n        ${description}`
  })
  const parts = [`Request: ${headline(route, mount)}`, `${about} ${rights[access]}`.trimEnd()]
  if (bytes !== undefined) parts.push(`Takes at most ${bytes.maxBytes} bytes of ${bytes.type}.`)
  const files = answers.flatMap((form) => (form.kind === 'bytes' ? [form.type] : []))
  if (files.length > 0) parts.push(`Answers ${files.join(' or ')}, without an envelope.`)
  if (fields.length > 0) parts.push('## PARAMETERS', fields.join('\n\n'))
  return parts.join('\n\n')
}
