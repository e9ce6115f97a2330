import type { BasicConstraints } from '../extensions/basicconstraints.ts'
import type { KeyUsage } from '../extensions/keyusage.ts'
import type { SubjectKey } from '../publickey.ts'
import { error, type Finding, warning } from './finding.ts'

/**
 * Basic constraints and key usage, and whether they agree (RFC 5280 sections 4.2.1.3 and 4.2.1.9, RFC 3279 section 2.3,
 * RFC 8410 section 5).
 */

export interface Usage {
  readonly basicConstraints: BasicConstraints | undefined
  readonly basicConstraintsCritical: boolean
  readonly keyUsage: readonly KeyUsage[] | undefined
  readonly key: SubjectKey
}

/** The faults of basic constraints and key usage, each by itself, together, and beside the type of the key. */
export function lintUsage({ basicConstraints, basicConstraintsCritical, keyUsage, key }: Usage): readonly Finding[] {
  const findings: Finding[] = []
  const ca = basicConstraints?.ca === true
  const signs = keyUsage?.includes('CertSign') === true
  if (keyUsage?.length === 0) findings.push(error('key_usage_empty', 'keyUsage: at least one bit must be set'))
  if (signs && !ca) findings.push(error('key_usage_ca', 'keyUsage: CertSign is for CA certificates only'))
  if (ca && !basicConstraintsCritical) {
    findings.push(error('extension_criticality', 'basicConstraints must be critical in a CA certificate'))
  }
  if (ca && keyUsage === undefined) findings.push(error('ca_key_usage', 'keyUsage is missing in a CA certificate'))
  if (ca && !signs) {
    findings.push(
      basicConstraints.pathLength === undefined
        ? warning('ca_key_usage', 'keyUsage: a CA certificate without CertSign cannot sign certificates')
        : error('path_length', 'basicConstraints: a path length needs the key usage CertSign'),
    )
  }
  if (keyUsage !== undefined) findings.push(...lintAgainstKey(keyUsage, key))
  return findings
}

const only: Readonly<Record<SubjectKey['family'], readonly KeyUsage[]>> = {
  rsa: ['DigitalSignature', 'ContentCommitment', 'KeyEncipherment', 'DataEncipherment', 'CertSign', 'CRLSign'],
  ec: ['DigitalSignature', 'ContentCommitment', 'KeyAgreement', 'CertSign', 'CRLSign', 'EncipherOnly', 'DecipherOnly'],
  ed25519: ['DigitalSignature', 'ContentCommitment', 'CertSign', 'CRLSign'],
}

/** Warnings only: the API's own defaults break these rules. */
function lintAgainstKey(keyUsage: readonly KeyUsage[], key: SubjectKey): readonly Finding[] {
  const findings: Finding[] = []
  const strange = keyUsage.filter((usage) => !only[key.family].includes(usage))
  if (strange.length > 0) {
    findings.push(warning('key_usage_key', `keyUsage: ${strange.join(', ')} is not for keys of type ${key.family}`))
  }
  const narrows = keyUsage.includes('EncipherOnly') || keyUsage.includes('DecipherOnly')
  if (narrows && !keyUsage.includes('KeyAgreement')) {
    findings.push(
      warning('key_usage_undefined', 'keyUsage: EncipherOnly and DecipherOnly mean nothing without KeyAgreement'),
    )
  }
  return findings
}
