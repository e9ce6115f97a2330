import { X509Certificate } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { done, fresh } from '../api/node.ts'
import { dataOf, useWorld } from './world.ts'

const world = useWorld()

describe('a root of a managed key', () => {
  test('signs itself, serves two mounts, and keeps its key from being deleted', async () => {
    const { root } = world
    const name = await world.managed(world.settingsOf())
    const paths = [fresh('pki'), fresh('pki')]
    const certificates = []
    for (const path of paths) {
      await done(root.post(`sys/mounts/${path}`, { type: 'pki' }))
      const wanted = { common_name: 'Managed Root', managed_key_name: name, key_name: 'hsm' }
      const made = dataOf(await done(root.post(`${path}/root/generate/kms`, wanted))) as Record<string, string>
      expect(made).not.toHaveProperty('private_key')
      const certificate = new X509Certificate(String(made.certificate))
      expect(certificate.verify(certificate.publicKey)).toBe(true)
      certificates.push(certificate)
      expect(dataOf(await done(root.get(`${path}/key/hsm`)))).toMatchObject({ managed_key_name: name, key_type: 'ec' })
      await done(root.post(`${path}/roles/r`, { allow_any_name: true, key_type: 'ec' }))
      const leaf = dataOf(await done(root.post(`${path}/issue/r`, { common_name: 'a.example', ttl: '1h' })))
      const issued = new X509Certificate(String((leaf as Record<string, string>).certificate))
      expect(issued.verify(certificate.publicKey)).toBe(true)
    }
    const [first, second] = certificates
    expect(first?.publicKey.export({ format: 'jwk' })).toEqual(second?.publicKey.export({ format: 'jwk' }))
    const again = { common_name: 'Again', managed_key_name: name }
    const twice = dataOf(await done(root.post(`${paths[0]}/root/generate/kms`, again))) as Record<string, string>
    expect(twice.key_name).toBe('hsm')
    const refused = await root.delete(`sys/managed-keys/pkcs11/${name}`)
    expect(refused.status).toBe(400)
    for (const path of paths) expect(refused.text).toContain(`${path}/key/hsm`)
    const typed = await root.post(`${paths[0]}/root/generate/kms`, { ...again, key_type: 'ec' })
    expect(typed.status).toBe(400)
  })
})
