import type { Import } from './imports.ts'

/**
 * The levels of src/, the highest first. A unit is a folder of src/ or a file there (config.ts and config/ are one). A
 * unit imports from lower levels; from its own level only where `mixed` says so, or by `allowed`.
 */
const levels: readonly { readonly units: readonly string[]; readonly mixed?: boolean }[] = [
  { units: ['main', 'commands', 'supervisor', 'unavailable', 'worker'], mixed: true },
  { units: ['app', 'core', 'initialise', 'open', 'ceremony'], mixed: true },
  { units: ['http', 'system', 'engines'] },
  { units: ['request', 'leases', 'audit', 'jobs', 'quota', 'tools'] },
  { units: ['auth', 'settings'] },
  { units: ['engine'] },
  { units: ['keys', 'x509'] },
  { units: ['hsm', 'store'] },
  {
    units: [
      'crypto',
      'errors',
      'route',
      'answers',
      'stream',
      'job',
      'log',
      'field',
      'clock',
      'config',
      'metrics',
      'after',
      'once',
      'duration',
      'freeze',
      'turns',
      'network',
      'workload',
    ],
    mixed: true,
  },
]

/** Imports of the same level that are meant. */
const allowed: Readonly<Record<string, readonly string[]>> = { request: ['audit', 'quota'] }

/** Downward imports that are forbidden all the same. */
const forbidden: Readonly<Record<string, readonly string[]>> = {
  engines: ['hsm'],
  unavailable: ['hsm', 'store'],
  supervisor: ['hsm'],
}

/** Units without I/O: the only other units and modules that they may import. */
const closed: Readonly<Record<string, readonly string[]>> = {
  crypto: ['errors', 'route', 'stream', 'after', 'node:crypto', 'node:buffer'],
}

/** Package → the only units that may import it. */
const packages: readonly { readonly name: RegExp; readonly units: readonly string[] }[] = [
  { name: /^(koa$|@koa\/|koa-)/, units: ['http'] },
  { name: /^mysql2?$/, units: ['store'] },
  { name: /^(pkcs11js|graphene-pk11)$/, units: ['hsm'] },
  { name: /^(@peculiar\/|pkijs$|asn1js$|reflect-metadata$)/, units: ['x509', 'keys'] },
]

/** The fault of one import line of src/; undefined if it is allowed. */
export function misdirected({ from, to }: Import): string | undefined {
  const unit = unitOf(from)
  const level = levelOf(unit)
  if (level < 0) return `${from}: src/${unit} has no level`
  if (!to.includes('/') || !isProjectFile(to)) return restricted(from, unit, to)
  if (!to.startsWith('src/')) return `${from} → ${to}: src/ imports nothing from outside`
  const other = unitOf(to)
  const below = levelOf(other)
  if (below < 0) return `${from} → ${to}: src/${other} has no level`
  if (unit !== other && closed[unit]?.includes(other) === false)
    return `${from} → ${to}: ${unit} must not import ${other}`
  if (forbidden[unit]?.includes(other)) return `${from} → ${to}: ${unit} must not import ${other}`
  if (unit === 'engines' && other === 'engines' && engineOf(from) !== engineOf(to)) {
    return `${from} → ${to}: engines never import each other`
  }
  if (unit === other || below > level) return undefined
  if (below < level) return `${from} → ${to}: ${other} lies above ${unit}`
  if (levels[level]?.mixed || allowed[unit]?.includes(other)) return undefined
  return `${from} → ${to}: ${unit} and ${other} lie on the same level`
}

function restricted(from: string, unit: string, name: string): string | undefined {
  if (closed[unit]?.includes(name) === false) return `${from} → ${name}: ${unit} does no I/O and must not import it`
  const rule = packages.find((candidate) => candidate.name.test(name))
  return rule === undefined || rule.units.includes(unit)
    ? undefined
    : `${from} → ${name}: only ${rule.units.join(' and ')} may import it`
}

const isProjectFile = (path: string): boolean => /\.(ts|mjs|js|json)$/.test(path)
const unitOf = (path: string): string => (path.split('/')[1] ?? '').replace(/\.ts$/, '')
const engineOf = (path: string): string => (path.split('/')[2] ?? '').replace(/\.ts$/, '')
const levelOf = (unit: string): number => levels.findIndex(({ units }) => units.includes(unit))
