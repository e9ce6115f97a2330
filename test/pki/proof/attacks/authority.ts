import { asn1, context, contextAround, write, writeNumber } from '../../../../src/crypto/der.ts'
import { writeOid } from '../../../../src/crypto/oid.ts'
import { altNames, attribute, dnsName, extension, extensionRequest, forge, text } from '../forge.ts'
import { type Attack, sequence } from './attack.ts'

const yes = write(asn1.boolean, Buffer.from([0xff]))
const basicConstraints = (...parts: readonly Buffer[]) => extension('2.5.29.19', sequence(...parts), true)
const keyUsage = (...octets: readonly number[]) =>
  extension('2.5.29.15', write(asn1.bitString, Buffer.from(octets)), true)
const unknown = (value: string, critical: boolean) => extension('1.3.6.1.4.1.99999.1', text(value), critical)
const subtree = (value: string) => sequence(dnsName(value))
const nameConstraints = (value: string) =>
  extension('2.5.29.30', sequence(write(contextAround(0), subtree(value))), true)

/** Requests that ask for authority, or for extensions that bind relying parties. */
export const authorityAttacks: readonly Attack[] = [
  { name: 'CA:true', csr: forge({ extensions: [basicConstraints(yes)] }) },
  {
    name: 'CA:true with a path length',
    csr: forge({ extensions: [basicConstraints(yes, writeNumber(Buffer.from([9])))] }),
  },
  {
    name: 'CA:true written as 1',
    csr: forge({ extensions: [basicConstraints(write(asn1.boolean, Buffer.from([1])))] }),
  },
  { name: 'keyCertSign', csr: forge({ extensions: [keyUsage(2, 0x04)] }) },
  { name: 'every key usage', csr: forge({ extensions: [keyUsage(7, 0xff, 0x80)] }) },
  { name: 'keyCertSign in a BIT STRING that is not DER', csr: forge({ extensions: [keyUsage(0, 0x04, 0, 0)] }) },
  { name: 'keyCertSign in a BIT STRING of 9 unused bits', csr: forge({ extensions: [keyUsage(9, 0x04)] }) },
  { name: 'cRLSign', csr: forge({ extensions: [keyUsage(1, 0x02)] }) },
  {
    name: 'name constraints',
    csr: forge({ extensions: [nameConstraints('evil.test')] }),
    smuggled: Buffer.from('evil.test'),
  },
  {
    name: 'CA:true, keyCertSign and name constraints',
    csr: forge({ extensions: [basicConstraints(yes), keyUsage(2, 0x04), nameConstraints('evil.test')] }),
    smuggled: Buffer.from('evil.test'),
  },
  {
    name: 'policy constraints',
    csr: forge({ extensions: [extension('2.5.29.36', sequence(write(context(0), Buffer.from([0]))), true)] }),
  },
  {
    name: 'policy mappings',
    csr: forge({
      extensions: [extension('2.5.29.33', sequence(sequence(writeOid('1.2.3'), writeOid('1.2.4'))), true)],
    }),
  },
  {
    name: 'an authority key identifier of its own',
    csr: forge({ extensions: [extension('2.5.29.35', sequence(write(context(0), Buffer.from('smuggled key id!'))))] }),
    smuggled: Buffer.from('smuggled key id!'),
  },
  {
    name: 'a subject key identifier of its own',
    csr: forge({ extensions: [extension('2.5.29.14', write(asn1.octetString, Buffer.from('smuggled key id!')))] }),
    smuggled: Buffer.from('smuggled key id!'),
  },
  {
    name: 'OCSP no-check and an OCSP signer',
    csr: forge({
      extensions: [
        extension('1.3.6.1.5.5.7.48.1.5', write(asn1.null)),
        extension('2.5.29.37', sequence(writeOid('1.3.6.1.5.5.7.3.9'))),
      ],
    }),
  },
  { name: 'noRevAvail', csr: forge({ extensions: [extension('2.5.29.56', write(asn1.null))] }) },
  {
    name: 'an SCT list',
    csr: forge({
      extensions: [extension('1.3.6.1.4.1.11129.2.4.2', write(asn1.octetString, Buffer.from('0000', 'hex')))],
    }),
  },
  {
    name: 'a precertificate poison',
    csr: forge({ extensions: [extension('1.3.6.1.4.1.11129.2.4.3', write(asn1.null), true)] }),
  },
  { name: 'an unknown critical extension', csr: forge({ extensions: [unknown('unknown-critical', true)] }) },
  {
    name: 'CA:true in a second extension request',
    csr: forge({
      attributes: [extensionRequest(altNames(dnsName('a.example'))), extensionRequest(basicConstraints(yes))],
    }),
  },
  {
    name: 'CA:true in Microsoft’s attribute',
    csr: forge({ attributes: [attribute('1.3.6.1.4.1.311.2.1.14', sequence(basicConstraints(yes)))] }),
  },
  {
    name: 'CA:true in both attributes',
    csr: forge({
      attributes: [
        extensionRequest(altNames(dnsName('a.example'))),
        attribute('1.3.6.1.4.1.311.2.1.14', sequence(basicConstraints(yes))),
      ],
    }),
  },
  {
    name: 'CA:true in a second value of the attribute',
    csr: forge({
      attributes: [
        attribute('1.2.840.113549.1.9.14', sequence(altNames(dnsName('a.example'))), sequence(basicConstraints(yes))),
      ],
    }),
  },
  { name: 'CA:false, then CA:true', csr: forge({ extensions: [basicConstraints(), basicConstraints(yes)] }) },
  {
    name: 'two alternative names extensions',
    csr: forge({ extensions: [altNames(dnsName('a.example')), altNames(dnsName('evil.test'))] }),
    smuggled: Buffer.from('evil.test'),
  },
]
