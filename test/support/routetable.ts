import { glob } from 'node:fs/promises'
import { join } from 'node:path'
import type { Route } from '../../src/route.ts'

const isRoute = (value: unknown): value is Route<unknown> =>
  typeof value === 'object' && value !== null && 'method' in value && 'path' in value && 'run' in value

const nameOf = ({ method, path }: Pick<Route<unknown>, 'method' | 'path'>): string => `${method} ${path}`

/** `METHOD path` of every route that a file of `folder` exports, sorted. */
export async function declaredRoutes(folder: string): Promise<string[]> {
  const declared: string[] = []
  for await (const file of glob('**/*.ts', { cwd: folder })) {
    const exports: Record<string, unknown> = await import(join(folder, file))
    declared.push(...Object.values(exports).filter(isRoute).map(nameOf))
  }
  return declared.sort()
}

/** The keys of a route table that differ from their route's own method and path. */
export const wrongKeys = (table: Readonly<Record<string, Pick<Route<unknown>, 'method' | 'path'>>>): string[] =>
  Object.entries(table).flatMap(([key, route]) => (key === nameOf(route) ? [] : [key]))
