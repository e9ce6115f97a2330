import type { KeyExport } from './keyexport.ts'
import type { KeyImport } from './keyimport.ts'
import type { MakeExportable } from './makeexportable.ts'

/** Import and export of keys. */
export interface Transfer {
  readonly keyImport: KeyImport
  readonly keyExport: KeyExport
  readonly makeExportable: MakeExportable
}
