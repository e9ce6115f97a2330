import { asn1, write, writeNumber } from '../../../../src/crypto/der.ts'
import { writeOid } from '../../../../src/crypto/oid.ts'
import { altNames, attribute, extension, forge, forgeDer, nameOf, pemOf, rdn, rsaWithSha256, text } from '../forge.ts'
import { type Attack, sequence } from './attack.ts'

/** An OID of 128 bytes, whose dotted form has 512 characters. */
const longOid = write(asn1.oid, Buffer.alloc(128, 0x7f))
/** An OID of a single arc of 896 bits. */
const wideOid = write(asn1.oid, Buffer.alloc(127, 0xff), Buffer.from([0x7f]))
const withOid = (oid: Buffer) => sequence(oid, write(asn1.octetString, text('long')))

/** The outer length in the long form that BER allows. */
const berLength = (der: Buffer): Buffer =>
  Buffer.concat([Buffer.from([0x30, 0x83, 0x00]), der.subarray(2, 4), der.subarray(4)])
const indefinite = (der: Buffer): Buffer =>
  Buffer.concat([Buffer.from([0x30, 0x80]), der.subarray(4), Buffer.from([0, 0])])

const nested = (depth: number): Buffer => {
  let set = write(asn1.set, text('deep'))
  for (let level = 0; level < depth; level++) set = write(asn1.set, set)
  return set
}

/** Requests that are not DER, or whose signature is no proof. */
export const encodingAttacks: readonly Attack[] = [
  { name: 'a length longer than it need be', csr: pemOf(berLength(forgeDer())) },
  { name: 'an indefinite length', csr: pemOf(indefinite(forgeDer())) },
  { name: 'bytes after the request', csr: pemOf(Buffer.concat([forgeDer(), Buffer.from('smuggled')])) },
  { name: 'a request cut short', csr: pemOf(forgeDer().subarray(0, 100)) },
  { name: 'an unknown version', csr: forge({ version: 1 }) },
  { name: 'SHA-1', csr: forge({ algorithm: sequence(writeOid('1.2.840.10045.4.1')), hash: 'sha1' }) },
  { name: 'an algorithm that is not the key’s', csr: forge({ algorithm: rsaWithSha256 }) },
  { name: 'an unknown algorithm', csr: forge({ algorithm: sequence(writeOid('1.2.3.4')) }) },
  {
    name: 'an algorithm with parameters that it does not have',
    csr: forge({ algorithm: sequence(writeOid('1.2.840.10045.4.3.2'), text('smuggled')) }),
  },
  { name: 'another hash than the algorithm says', csr: forge({ hash: 'sha512' }) },
  { name: 'a hundred nested SETs', csr: forge({ attributes: [attribute('1.2.3.4', nested(100))] }) },
  { name: 'ten thousand nested SETs', csr: forge({ attributes: [attribute('1.2.3.4', nested(10_000))] }) },
  { name: 'nested SETs in the subject', csr: forge({ subject: nameOf(nested(1000)) }) },
  { name: 'nested SETs as extension', csr: forge({ extensions: [extension('1.3.6.1.4.1.99999.1', nested(5000))] }) },
  { name: 'an empty RDN', csr: forge({ subject: nameOf(write(asn1.set)) }) },
  {
    name: 'an attribute without value',
    csr: forge({ subject: nameOf(write(asn1.set, sequence(writeOid('2.5.4.3')))) }),
  },
  {
    name: 'an RDN out of order',
    csr: forge({
      subject: nameOf(
        write(asn1.set, sequence(writeOid('2.5.4.10'), text('z')), sequence(writeOid('2.5.4.3'), text('a'))),
      ),
    }),
  },
  {
    name: 'an attribute that is no text',
    csr: forge({ subject: nameOf(rdn('2.5.4.3', writeNumber(Buffer.from([7])))) }),
  },
  {
    name: 'an attribute with an OID of a hundred bytes',
    csr: forge({
      subject: nameOf(write(asn1.set, sequence(write(asn1.oid, Buffer.alloc(99, 0xff), Buffer.from([1])), text('a')))),
    }),
  },
  {
    name: 'an OID that is not minimal',
    csr: forge({
      subject: nameOf(write(asn1.set, sequence(write(asn1.oid, Buffer.from([0x55, 0x80, 0x04, 0x03])), text('a')))),
    }),
  },
  { name: 'an extension with an OID of 512 characters', csr: forge({ extensions: [withOid(longOid)] }) },
  { name: 'an extension with an OID of one arc of 896 bits', csr: forge({ extensions: [withOid(wideOid)] }) },
  {
    name: 'an other name with an OID of 512 characters',
    csr: forge({ extensions: [altNames(write(0xa0, longOid, write(0xa0, text('a'))))] }),
  },
  {
    name: 'a subject attribute with an OID of 512 characters',
    csr: forge({ subject: nameOf(write(asn1.set, sequence(longOid, text('a')))) }),
  },
  {
    name: 'an attribute with an OID of 512 characters',
    csr: forge({ attributes: [sequence(longOid, write(asn1.set, text('a')))] }),
  },
  { name: 'no request at all', csr: pemOf(Buffer.alloc(0)) },
  {
    name: 'ten thousand attributes',
    csr: forge({ attributes: Array.from({ length: 6000 }, (_, at) => attribute(`1.2.${at + 1}`)) }),
  },
  {
    name: 'three thousand extensions',
    csr: forge({ extensions: Array.from({ length: 3000 }, (_, at) => extension(`1.2.${at + 1}`, Buffer.alloc(0))) }),
  },
]
