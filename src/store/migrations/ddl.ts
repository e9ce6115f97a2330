/**
 * Text is compared byte by byte, and of one character set everywhere: compared with an ASCII column, a name that is
 * not ASCII would be an error of the server. Times are milliseconds. No foreign keys: the application removes what
 * belongs together, and rows are sealed one by one.
 */
export const uuid = 'VARCHAR(36)'
const options = 'ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin'

export const table = (name: string, lines: readonly string[]): string =>
  `CREATE TABLE IF NOT EXISTS \`${name}\` (\n  ${lines.join(',\n  ')}\n) ${options}`

/** A table whose rows carry a MAC. Keys need no namespace where they have the mount: mount uuids are unique. */
export const sealed = (name: string, columns: readonly string[], keys: readonly string[] = []): string =>
  table(name, [
    `id ${uuid} NOT NULL`,
    'namespace VARCHAR(128) NOT NULL',
    `mount ${uuid} NOT NULL`,
    'rev BIGINT NOT NULL',
    'epoch BIGINT NOT NULL',
    `mac_key_id ${uuid} NOT NULL`,
    'mac_format INT NOT NULL',
    'mac BINARY(32) NOT NULL',
    ...columns,
    'PRIMARY KEY (id)',
    ...keys,
  ])

export const flags = (...names: readonly string[]): string[] => names.map((name) => `${name} TINYINT NOT NULL`)
export const integers = (...names: readonly string[]): string[] => names.map((name) => `${name} BIGINT NOT NULL`)
export const words = (...names: readonly string[]): string[] => names.map((name) => `${name} VARCHAR(64) NOT NULL`)
