/**
 * Text is compared byte by byte, in one character set everywhere: comparing a name that is not ASCII with an ASCII
 * column would be an error of the server. Times are milliseconds. No foreign keys: the application removes rows that
 * belong together, and rows are sealed one by one.
 */
export const uuid = 'VARCHAR(36)'
const options = 'ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin'

export const table = (name: string, lines: readonly string[]): string =>
  `CREATE TABLE IF NOT EXISTS \`${name}\` (\n  ${lines.join(',\n  ')}\n) ${options}`

/** A table whose rows carry a MAC. Keys with the mount need no namespace: mount uuids are unique. */
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

/** Quoted, because newer servers reserve more words: MySQL 9.2 reserves `library`. */
export const flags = (...names: readonly string[]): string[] => names.map((name) => `\`${name}\` TINYINT NOT NULL`)
export const integers = (...names: readonly string[]): string[] => names.map((name) => `\`${name}\` BIGINT NOT NULL`)
export const words = (...names: readonly string[]): string[] => names.map((name) => `\`${name}\` VARCHAR(64) NOT NULL`)
