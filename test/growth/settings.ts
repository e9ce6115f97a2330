type Body = Readonly<Record<string, unknown>>
type At = (route: string, values?: Body, body?: Body) => Promise<unknown>

/** Settings for all requests: quotas, CORS, and the headers in audit lines. */
export async function tellSettings(at: At): Promise<void> {
  const named = { name: 'wide' }
  await at('POST quotas/rate-limit/:name', named, { rate: 1_000_000 })
  await at('GET quotas/rate-limit/:name', named)
  await at('LIST quotas/rate-limit')
  await at('DELETE quotas/rate-limit/:name', named)
  await at('POST quotas/lease-count/:name', named, { max_leases: 1_000_000 })
  await at('GET quotas/lease-count/:name', named)
  await at('LIST quotas/lease-count')
  await at('DELETE quotas/lease-count/:name', named)
  await at('POST quotas/lease-count/:name', named, { max_leases: 1_000_000, path: 'transit' })
  await at('DELETE quotas/lease-count/:name', named)
  await at('POST quotas/config', {}, { enable_rate_limit_response_headers: false })
  await at('GET quotas/config')
  await at('POST config/cors', {}, { allowed_origins: 'https://console.example' })
  await at('GET config/cors')
  await at('DELETE config/cors')
  const header = { header: 'X-Case' }
  await at('POST config/auditing/request-headers/:header', header, { hmac: true })
  await at('GET config/auditing/request-headers/:header', header)
  await at('GET config/auditing/request-headers')
  await at('DELETE config/auditing/request-headers/:header', header)
}
