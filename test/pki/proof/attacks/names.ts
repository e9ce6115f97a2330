import { asn1, write, writeNumber } from '../../../../src/crypto/der.ts'
import { writeOid } from '../../../../src/crypto/oid.ts'
import { altNames, commonName, dnsName, forge, nameOf, rdn, text } from '../forge.ts'
import type { Attack } from './attack.ts'

const long = 'a'.repeat(100_000)
const many = (count: number, write: (at: number) => Buffer) => Array.from({ length: count }, (_, at) => write(at))

/** Requests whose names lie, or are too many. */
export const nameAttacks: readonly Attack[] = [
  {
    name: 'a null byte in the common name',
    csr: forge({ subject: commonName('a.example\0.evil.test') }),
    smuggled: Buffer.from('evil.test'),
  },
  {
    name: 'a null byte in a BMPString',
    csr: forge({ subject: commonName(Buffer.from('0061000000620063', 'hex'), asn1.bmpString) }),
  },
  {
    name: 'a null byte in a DNS name',
    csr: forge({ extensions: [altNames(dnsName('a.example\0.evil.test'))] }),
    smuggled: Buffer.from('evil.test'),
  },
  {
    name: 'a null byte in an e-mail address',
    csr: forge({ extensions: [altNames(write(0x81, Buffer.from('a@a.example\0@evil.test')))] }),
    smuggled: Buffer.from('evil.test'),
  },
  {
    name: 'a null byte in a URI',
    csr: forge({ extensions: [altNames(write(0x86, Buffer.from('https://a.example\0evil.test')))] }),
    smuggled: Buffer.from('evil.test'),
  },
  { name: 'a DNS name in UTF-8', csr: forge({ extensions: [altNames(dnsName('еxample.test'))] }) },
  { name: 'a homograph as common name', csr: forge({ subject: commonName('www.еxample.test') }) },
  { name: 'a text that is not UTF-8', csr: forge({ subject: commonName(Buffer.from([0xff, 0xfe])) }) },
  { name: 'a line break in the common name', csr: forge({ subject: commonName('a.example\nevil.test') }) },
  { name: 'an asterisk as IA5String', csr: forge({ subject: commonName('*', asn1.ia5String) }) },
  {
    name: 'two common names',
    csr: forge({ subject: nameOf(rdn('2.5.4.3', text('evil.test')), rdn('2.5.4.3', text('a.example'))) }),
  },
  { name: 'a common name of 100,000 characters', csr: forge({ subject: commonName(long.slice(0, 90_000)) }) },
  { name: 'a DNS name of 90,000 characters', csr: forge({ extensions: [altNames(dnsName(long.slice(0, 90_000)))] }) },
  {
    name: 'an e-mail address of 90,000 characters',
    csr: forge({ extensions: [altNames(write(0x81, Buffer.from(`${'a.'.repeat(45_000)}@a`)))] }),
  },
  {
    name: 'a URI of 90,000 characters',
    csr: forge({ extensions: [altNames(write(0x86, Buffer.from(`a:${'/'.repeat(90_000)}`)))] }),
  },
  {
    name: 'an other name of 90,000 characters',
    csr: forge({ extensions: [altNames(write(0xa0, writeOid('1.2.3'), write(0xa0, text(long.slice(0, 90_000)))))] }),
  },
  {
    name: 'an organization of 90,000 characters',
    csr: forge({ subject: nameOf(rdn('2.5.4.10', text(long.slice(0, 90_000))), rdn('2.5.4.3', text('a.example'))) }),
  },
  {
    name: 'a text of an unknown attribute of 90,000 characters',
    csr: forge({ subject: nameOf(rdn('1.2.3.4', text(long.slice(0, 90_000))), rdn('2.5.4.3', text('a.example'))) }),
  },
  { name: 'an empty DNS name', csr: forge({ extensions: [altNames(dnsName(''))] }) },
  { name: 'no alternative name in the extension', csr: forge({ extensions: [altNames()] }) },
  { name: 'an address of 5 bytes', csr: forge({ extensions: [altNames(write(0x87, Buffer.alloc(5)))] }) },
  { name: 'a directory name', csr: forge({ extensions: [altNames(write(0xa4, commonName('evil.test')))] }) },
  {
    name: 'a directory name with a null byte',
    csr: forge({ extensions: [altNames(write(0xa4, commonName('evil.test\0')))] }),
    smuggled: Buffer.from('evil.test'),
  },
  { name: 'a registered ID', csr: forge({ extensions: [altNames(write(0x88, Buffer.from('2a0304', 'hex')))] }) },
  { name: 'an X.400 address', csr: forge({ extensions: [altNames(write(0xa3, text('evil.test')))] }) },
  { name: 'an EDI party name', csr: forge({ extensions: [altNames(write(0xa5, write(0xa1, text('evil.test'))))] }) },
  {
    name: 'a name of an unknown kind',
    csr: forge({ extensions: [altNames(write(0x89, Buffer.from('evil.test')))] }),
    smuggled: Buffer.from('evil.test'),
  },
  {
    name: 'an other name that is no UTF8String',
    csr: forge({ extensions: [altNames(write(0xa0, writeOid('1.2.3'), write(0xa0, writeNumber(Buffer.from([7])))))] }),
  },
  { name: 'an empty subject and no other name', csr: forge({ subject: nameOf() }) },
  { name: '9,000 DNS names', csr: forge({ extensions: [altNames(...many(9000, (at) => dnsName(`${at}.a`)))] }) },
  { name: '30,000 DNS names', csr: forge({ extensions: [altNames(...many(30_000, () => dnsName('a')))] }) },
  {
    name: '9,900 directory names',
    csr: forge({ extensions: [altNames(...many(4500, (at) => write(0xa4, commonName(`${at}`))))] }),
  },
  {
    name: '15,000 addresses',
    csr: forge({ extensions: [altNames(...many(15_000, () => write(0x87, Buffer.alloc(4))))] }),
  },
  {
    name: '9,000 e-mail addresses',
    csr: forge({ extensions: [altNames(...many(9000, (at) => write(0x81, Buffer.from(`${at}@a`))))] }),
  },
  { name: '5,000 RDNs', csr: forge({ subject: nameOf(...many(5000, () => rdn('2.5.4.11', text('a')))) }) },
  {
    name: '5,000 serial numbers',
    csr: forge({ subject: nameOf(...many(5000, (at) => rdn('2.5.4.5', text(`${at}`)))) }),
  },
]
