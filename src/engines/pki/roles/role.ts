import { data, titled } from '../../../answers.ts'
import { freeze } from '../../../freeze.ts'
import type { Data } from '../../../route.ts'
import { initialSettings, type RoleSettings, roleProperties } from './fields.ts'

type Camel<S extends string> = S extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : S

/** A role as rules read it: key and signature size are the effective ones, durations are seconds. */
export type Role = { readonly name: string } & { readonly [K in keyof RoleSettings as Camel<K>]: RoleSettings[K] }

const camel = (name: string): string => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
const properties = Object.keys(initialSettings).map((name) => [name, camel(name)] as const)

const usualKeyBits: Readonly<Record<string, number>> = { rsa: 2048, ec: 256 }

/** Settings by which no name is refused. New rules of names are added here too, or they bind CAs and sign-verbatim. */
export const anyName: Partial<RoleSettings> = {
  allow_any_name: true,
  enforce_hostnames: false,
  require_cn: false,
  cn_validations: ['disabled'],
  allowed_uri_sans: ['*'],
  allowed_other_sans: ['*'],
  allowed_serial_numbers: ['*'],
  allowed_user_ids: ['*'],
}

/** A role with these settings; missing fields have their defaults. */
export function createRole(name: string, given: Partial<RoleSettings>): Role {
  const settings = { ...initialSettings, ...given }
  const { key_type, key_bits, signature_bits } = settings
  const usualBits = usualKeyBits[key_type]
  const inForce: RoleSettings = {
    ...settings,
    key_bits: usualBits === undefined ? 0 : key_bits || usualBits,
    signature_bits: signature_bits || (key_type === 'rsa' ? 256 : 0),
  }
  const values: Readonly<Record<string, unknown>> = inForce
  return freeze({ name, ...Object.fromEntries(properties.map(([wire, property]) => [property, values[wire]])) }) as Role
}

/** The members of describeRole. */
export const roleAnswer = data(titled('Role', roleProperties))

/** A role as a read shows it. */
export function describeRole(role: Role): Data {
  const values: Readonly<Record<string, unknown>> = role
  return Object.fromEntries(properties.map(([wire, property]) => [wire, values[property]]))
}
