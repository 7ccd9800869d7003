import { describe, expect, test } from 'vitest'
import { logStartupWarnings } from '../../../src/cli/serve/run-service.ts'
import { createSecretBox } from '../../../src/platform/secret-box.ts'
import { mail } from '../../support/engine.ts'
import { countedRandom } from '../../support/random.ts'
import { createTestService } from '../../support/service.ts'

const warnings = (lines: Awaited<ReturnType<typeof createTestService>>['lines']) =>
  lines.filter(({ level }) => level === 'warn').map(({ message, fields }) => ({ message, fields }))

describe('startup warnings', () => {
  test('are empty if nothing has changed', async () => {
    const { service, lines, request } = await createTestService()
    await request('/v1/keys', {
      body: { name: 'CI', scopes: ['jobs:read'] },
      headers: { 'Idempotency-Key': 'one' },
    })
    await logStartupWarnings(service)
    expect(warnings(lines)).toEqual([])
  })

  test('name accounts with an unknown plan', async () => {
    const { service, lines, addAccount } = await createTestService()
    await addAccount('acc_2', 'team')
    await logStartupWarnings(service)
    expect(warnings(lines)).toEqual([
      {
        message: expect.stringMatching(/^the plan "team" does not exist; /),
        fields: { accountId: 'acc_2' },
      },
    ])
  })

  test.each([
    ['webhooks', '/v1/webhooks', { url: 'https://app.test/hook', events: ['batch.completed'] }],
    ['answers', '/v1/keys', { name: 'CI', scopes: ['jobs:read'] }],
  ])('report a secret that cannot decrypt stored values: %s', async (_, path, body) => {
    const zone = { ...mail('a.test', '192.0.2.1'), 'app.test': { A: ['8.8.8.8'] } }
    const { service, lines, request } = await createTestService({ engine: { zone } })
    const headers = path === '/v1/keys' ? { 'Idempotency-Key': 'one' } : {}
    expect((await request(path, { body, headers })).status).toBe(201)
    await logStartupWarnings({
      ...service,
      secretBox: createSecretBox('another secret', countedRandom()),
    })
    expect(warnings(lines)).toMatchObject([
      { message: expect.stringMatching(/^the secret has changed: /) },
    ])
  })
})
