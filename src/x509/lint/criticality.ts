import { type Extension, extensionOids } from '../extension.ts'
import { type Finding, warning } from './finding.ts'

/** Extensions that must be, must not be, or should (not) be critical (RFC 5280 section 4.2; RFC 9608). */

interface Rule {
  readonly name: string
  readonly critical: boolean
  readonly severity: Finding['severity']
}

const subjectDirectoryAttributes = '2.5.29.9'

const must = (name: string): Rule => ({ name, critical: true, severity: 'error' })
const mustNot = (name: string): Rule => ({ name, critical: false, severity: 'error' })
const should = (name: string): Rule => ({ name, critical: true, severity: 'warning' })
const shouldNot = (name: string): Rule => ({ name, critical: false, severity: 'warning' })

const rules: ReadonlyMap<string, Rule> = new Map([
  [extensionOids.authorityKeyIdentifier, mustNot('authorityKeyIdentifier')],
  [extensionOids.subjectKeyIdentifier, mustNot('subjectKeyIdentifier')],
  [extensionOids.keyUsage, should('keyUsage')],
  [extensionOids.policyMappings, should('policyMappings')],
  [extensionOids.issuerAltName, shouldNot('issuerAltName')],
  [subjectDirectoryAttributes, mustNot('subjectDirectoryAttributes')],
  [extensionOids.nameConstraints, must('nameConstraints')],
  [extensionOids.policyConstraints, must('policyConstraints')],
  [extensionOids.inhibitAnyPolicy, must('inhibitAnyPolicy')],
  [extensionOids.crlDistributionPoints, shouldNot('cRLDistributionPoints')],
  [extensionOids.freshestCrl, mustNot('freshestCRL')],
  [extensionOids.authorityInformationAccess, mustNot('authorityInfoAccess')],
  [extensionOids.subjectInformationAccess, mustNot('subjectInfoAccess')],
  [extensionOids.noRevAvail, mustNot('noRevAvail')],
])

const known: ReadonlySet<string> = new Set(Object.values(extensionOids))

/** Extensions that are critical and should not be, or are not and should; and critical ones that few programs know. */
export function lintCriticality(extensions: readonly Extension[]): readonly Finding[] {
  const findings: Finding[] = []
  for (const { oid, critical } of extensions) {
    const rule = rules.get(oid)
    if (rule !== undefined && rule.critical !== critical) findings.push(describe(rule))
    if (critical && !known.has(oid)) {
      findings.push(warning('extension_unknown', `extension ${oid} is critical, and few relying parties may know it`))
    }
  }
  return findings
}

function describe({ name, critical, severity }: Rule): Finding {
  const verb = `${severity === 'error' ? 'must' : 'should'}${critical ? '' : ' not'}`
  return { rule: 'extension_criticality', text: `${name} ${verb} be critical`, severity }
}
