import { describe, expect, test } from 'vitest'
import { mail, toRecipients } from '../../support/engine.ts'
import { createTestService } from '../../support/service.ts'

const ask = async (
  { json }: Pick<Awaited<ReturnType<typeof createTestService>>, 'json'>,
  domain: string,
  headers: Record<string, string> = {},
) => (await json(`/v1/domains/${domain}`, { headers })).data as Record<string, unknown>

describe('GET /v1/domains/{domain}', () => {
  test('has what the DNS and the lists tell, and contacts no mail server', async () => {
    const fixture = await createTestService()
    expect(await ask(fixture, 'A.test')).toEqual({
      domain: 'a.test',
      mail: 'mx',
      mx_hosts: ['mx.a.test'],
      operator: 'a.test',
      provider: 'a.test',
      is_catch_all: null,
      is_disposable: false,
      is_free: false,
      is_relay: false,
      is_blocklisted: false,
      did_you_mean: null,
      policies: { spf: null, dmarc: null, mta_sts: false },
      feedback: null,
    })
    expect(fixture.mx.dialled).toEqual([])
  })

  test.each([
    ['every name', () => '250 2.1.5 Ok', true],
    [
      'existing names only',
      (to: string) => (to.startsWith('ann@') ? '250 2.1.5 Ok' : '550 5.1.1 No'),
      false,
    ],
  ])('knows after a verification that a domain accepts %s', async (_, reply, isCatchAll) => {
    const fixture = await createTestService({ engine: { script: toRecipients(reply) } })
    await fixture.json('/v1/verify/single', { body: { email: 'ann@a.test' } })
    expect(await ask(fixture, 'a.test')).toMatchObject({ is_catch_all: isCatchAll })
  })

  test('has the policies that the domain publishes', async () => {
    const zone = {
      ...mail('p.test', '192.0.2.7'),
      'p.test': { MX: [[10, 'mx.p.test']] as const, TXT: ['v=spf1 mx -all', 'other'] },
      '_dmarc.p.test': { TXT: ['v=DMARC1; p=quarantine; rua=mailto:a@p.test'] },
      '_mta-sts.p.test': { TXT: ['v=STSv1; id=1'] },
    }
    const fixture = await createTestService({ engine: { zone } })
    expect((await ask(fixture, 'p.test')).policies).toEqual({
      spf: 'v=spf1 mx -all',
      dmarc: 'quarantine',
      mta_sts: true,
    })
  })

  test.each([
    ['gone.test', { mail: 'no-domain', mx_hosts: [], operator: null }],
    ['gmial.com', { did_you_mean: 'gmail.com' }],
    ['mailinator.com', { is_disposable: true }],
    ['gmail.com', { is_free: true }],
  ])('%s has %j', async (domain, expected) => {
    expect(await ask(await createTestService(), domain)).toMatchObject(expected)
  })

  test('has the outcomes that the account reported, and those of no other', async () => {
    const fixture = await createTestService()
    await fixture.addAccount('acc_2')
    const key = await fixture.addKey({ id: 'key_2', accountId: 'acc_2' })
    const items = ['delivered', 'delivered', 'bounced'].map((kind, n) => ({
      email: `user${n}@a.test`,
      kind,
      ...(kind === 'bounced' ? { code: 550, enhanced_code: '5.1.1', text: 'User unknown' } : {}),
    }))
    await fixture.json('/v1/feedback', { body: { items } })
    expect((await ask(fixture, 'a.test')).feedback).toEqual({
      delivered: 2,
      bounced: 1,
      bounce_rate_min: 0.061,
      bounce_rate_max: 0.792,
    })
    const { data } = await fixture.json('/v1/domains/a.test', { key })
    expect(data).toMatchObject({ feedback: null })
  })

  test('is free, and counts toward the limit of single verifications', async () => {
    const fixture = await createTestService({ plan: 'free' })
    await ask(fixture, 'a.test')
    expect((await fixture.json('/v1/credits')).data).toMatchObject({ credits_consumed: 0 })
    const { data } = await fixture.json('/v1/limits')
    const { limits } = data as { limits: { name: string; limit: number; remaining: number }[] }
    const single = limits.find(({ name }) => name === 'ip:single')
    expect((single?.limit ?? 0) - (single?.remaining ?? 0)).toBe(1)
  })

  test('is simulated in the sandbox, without a DNS question', async () => {
    const fixture = await createTestService()
    const data = await ask(fixture, 'catchall.example', { 'X-EV-Sandbox': 'true' })
    expect(data).toMatchObject({ is_catch_all: true, mail: 'mx', sandbox: true })
    expect(fixture.zone.asked).toEqual([])
  })

  test.each(['no%20domain', 'a..test', 'ann%40a.test', '%5B192.0.2.1%5D'])(
    'refuses %s with the reason',
    async domain => {
      const { request } = await createTestService()
      const response = await request(`/v1/domains/${domain}`)
      expect(response.status).toBe(400)
      expect(await response.json()).toMatchObject({
        code: 'invalid_request',
        error: expect.stringMatching(/is not a domain\..*such as example\.com\.$/),
      })
    },
  )
})
