import { describe, expect, test } from 'vitest'
import { addGuardedRoute, codeOf } from '../support/guarded-route.ts'
import { createTestService } from '../support/service.ts'

const LOCAL = { ip: '127.0.0.1', key: null }

describe('access to metrics', () => {
  test('is allowed from this machine', async () => {
    const { request } = await createTestService()
    expect((await request('/metrics', LOCAL)).status).toBe(200)
    expect((await request('/metrics', { ...LOCAL, ip: '::1' })).status).toBe(200)
    const answer = await request('/metrics', { ...LOCAL, ip: '192.0.2.1' })
    expect([answer.status, await codeOf(answer)]).toEqual([403, 'ip_restricted'])
  })

  test('is refused for requests forwarded by a proxy on this machine', async () => {
    const { request } = await createTestService()
    const headers = { 'X-Forwarded-For': '127.0.0.1' }
    expect((await request('/metrics', { ...LOCAL, headers })).status).toBe(403)
  })

  test('is allowed with the token only', async () => {
    const { request } = await createTestService({ settings: { metricsToken: 'let me in' } })
    const { request: open } = await createTestService({ settings: { metricsToken: 'sesame' } })
    expect((await open('/metrics', { key: 'sesame' })).status).toBe(200)
    expect((await open('/metrics', { key: 'sesam' })).status).toBe(401)
    expect((await request('/metrics', {})).status).toBe(401)
  })
})

describe('metrics', () => {
  test('count requests by declared path, and refusals by limit', async () => {
    const h = await createTestService({ plan: 'free' })
    addGuardedRoute(h, '/v1/room/:id')
    for (let n = 0; n < 12; n++) await h.request(`/v1/room/${n}`, { body: {} })
    for (let n = 0; n < 5; n++) await h.request(`/v1/unknown/${n}`)
    const text = await (await h.request('/metrics', LOCAL)).text()
    expect(text).toContain(
      'ev_http_requests_total{method="POST",route="/v1/room/:id",status="200"} 10',
    )
    expect(text).toContain(
      'ev_http_requests_total{method="POST",route="/v1/room/:id",status="429"} 2',
    )
    expect(text).toContain('ev_http_requests_total{method="GET",route="none",status="404"} 5')
    expect(text).toContain('ev_limit_refusals_total{limit="account:plan"} 2')
    expect(text).toContain('ev_http_request_duration_seconds_count')
    expect(text).not.toContain('unknown/3')
  })

  test('cover the queue, verifications, the event loop and memory', async () => {
    const h = await createTestService()
    const usage = { account_id: 'acc_1', key_id: 'key_1', day: 0, credits: 3 }
    await h.database.db
      .insertInto('usage')
      .values({ ...usage, class: 'risky', verifications: 5, cached: 2 })
      .execute()
    h.worker.take('job_1')
    const verify = (headers = {}) =>
      h.settled(h.request('/v1/verify/single', { body: { email: 'ann@a.test' }, headers }))
    await verify()
    await verify({ 'X-EV-Sandbox': 'true' })
    await h.settled(h.ledger.flushed())
    const text = await (await h.request('/metrics', LOCAL)).text()
    expect(text).toContain('ev_jobs 1')
    expect(text).toContain('ev_queue_entries{state="waiting"} 0')
    expect(text).toContain('ev_verifications{class="risky",cached="true"} 2')
    expect(text).toContain('ev_verifications{class="risky",cached="false"} 3')
    expect(text).toContain('ev_verdicts{reason="accepted_email"} 1')
    expect(text).toContain('process_resident_memory_bytes')
    expect(text).toContain('nodejs_eventloop_lag_seconds')
  })

  test('cover webhook requests and undelivered events', async () => {
    const status = () => ({ inFlight: 3, delivered: 40, retried: 5, failed: 6 })
    const h = await createTestService({ deps: { deliveries: { wake: () => {}, status } } })
    const row = { event_id: 'evt_1', webhook_id: 'wh_1', kind: 'quota.warning', attempt: 0 }
    const states = ['pending', 'retry_scheduled', 'delivered', 'failed'] as const
    await h.database.db
      .insertInto('delivery')
      .values(
        states.map(state => ({
          ...row,
          id: `dlv_${state}`,
          state,
          trigger: 'scheduled' as const,
          due_at: 0,
          created_at: 0,
        })),
      )
      .execute()
    for (let look = 0; look < 2; look++) {
      const text = await (await h.request('/metrics', LOCAL)).text()
      expect(text).toContain('# TYPE ev_webhook_attempts_total counter')
      expect(text).toContain('ev_webhook_attempts_total{outcome="delivered"} 40')
      expect(text).toContain('ev_webhook_attempts_total{outcome="retried"} 5')
      expect(text).toContain('ev_webhook_attempts_total{outcome="failed"} 6')
      expect(text).toContain('ev_webhook_requests_in_flight 3')
      expect(text).toContain('ev_webhook_deliveries_open 2')
    }
  })

  test('name the version of ev and of Node', async () => {
    const h = await createTestService({ settings: { version: '1.2.3' } })
    const text = await (await h.request('/metrics', LOCAL)).text()
    expect(text).toContain(`ev_build_info{version="1.2.3",node="${process.versions.node}"} 1`)
  })

  test('tell which operators block an egress, with one label for all that are not known', async () => {
    const refused = {
      greeting: '554 5.7.1 blocked using zen.spamhaus.org, see https://lists.example/x',
    }
    const hosts = {
      'a.test': 'a.mail.protection.outlook.com',
      'b.test': 'mx.b.test',
      'c.test': 'mx.c.test',
    }
    const zone = Object.entries(hosts).flatMap(([domain, host], n) => [
      [domain, { MX: [[10, host]] }],
      [host, { A: [`192.0.2.${n + 1}`] }],
    ])
    const h = await createTestService({
      engine: { script: refused, zone: Object.fromEntries(zone) },
    })
    const read = async () => await (await h.request('/metrics', LOCAL)).text()
    const before = await read()
    expect(before).not.toContain('ev_smtp_port_reachable{')
    expect(before).toContain('ev_operators_blocking{egress="default",operator="other"} 0')
    for (const domain of Object.keys(hosts)) {
      await h.settled(h.request('/v1/verify/single', { body: { email: `ann@${domain}` } }))
    }
    const text = await read()
    expect(text).toContain('ev_operators_blocking{egress="default",operator="microsoft-365"} 1')
    expect(text).toContain('ev_operators_blocking{egress="default",operator="other"} 2')
    expect(text).not.toContain('operator="b.test"')
    expect(text).toContain('ev_smtp_port_reachable{egress="default"} 1')
    expect(text).toContain('ev_smtp_connections{egress="default"} 0')
  })

  test('are served with health on a separate port, and nothing else there', async () => {
    const { watch: app } = await createTestService()
    const local = { incoming: { socket: { remoteAddress: '127.0.0.1' } } }
    for (const path of ['/livez', '/readyz', '/health', '/metrics']) {
      expect([path, (await app.request(path, {}, local)).status]).toEqual([path, 200])
    }
    expect((await app.request('/v1/jobs', {}, local)).status).toBe(404)
  })
})
