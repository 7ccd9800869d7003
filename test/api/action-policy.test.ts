import { describe, expect, test } from 'vitest'
import { MIXED } from '../support/job-rows.ts'
import { createSimulatedList } from '../support/list-service.ts'
import { createTestService } from '../support/service.ts'

const STRICT = { method: 'PATCH', body: { action_policy: 'strict' } }

/** An address of a role, with a different action under each policy. */
const ROLE = 'info@a.test'

/** The account of a caller may be a second old. */
const APPLIED_MS = 1_001

const ACTIONS = { strict: 'suppress', balanced: 'send_with_care', lenient: 'send' } as const

describe('the action policy', () => {
  test.each(['strict', 'balanced', 'lenient'] as const)(
    'of the service decides for accounts without one: %s',
    async actionPolicy => {
      const { json } = await createTestService({ settings: { actionPolicy } })
      const result = await json('/v1/verify/single', { body: { email: ROLE } })
      expect(result).toMatchObject({ class: 'risky', action: ACTIONS[actionPolicy] })
    },
  )

  test('of an account decides in every answer with results', async () => {
    const { clock, json } = await createTestService()
    expect(await json('/v1/account', STRICT)).toMatchObject({ data: { action_policy: 'strict' } })
    await clock.advance(APPLIED_MS)
    const body = { email: ROLE }
    expect(await json('/v1/verify/single', { body })).toMatchObject({
      action: 'suppress',
      action_reason: 'The address belongs to a function, not to a person, so do not send.',
    })
    const included = '/v1/verify/single?include=flags,evidence'
    expect(await json(included, { body })).toMatchObject({ action: 'suppress' })
    expect(await json('/v1/verify', { body })).toMatchObject({ action: 'suppress' })
    const { results } = await json('/v1/verify/bulk', { body: { emails: [ROLE] } })
    expect(results).toMatchObject([{ action: 'suppress' }])
  })

  test('decides in the stream of steps', async () => {
    const { clock, json, request } = await createTestService()
    await json('/v1/account', STRICT)
    await clock.advance(APPLIED_MS)
    const headers = { Accept: 'text/event-stream' }
    const response = await request('/v1/verify/single', { body: { email: ROLE }, headers })
    expect(await response.text()).toContain('"action":"suppress"')
  })

  test('decides about results that are stored already, whichever way they are read', async () => {
    const { path, clock, json, request } = await createSimulatedList(MIXED)
    const rows = async () => {
      const { data } = await json(`${path}/results`)
      const { items } = data as { items: { reason: string; action: string }[] }
      return Object.fromEntries(items.map(({ reason, action }) => [reason, action]))
    }
    expect(await rows()).toMatchObject({ role_account: 'send_with_care', timeout: 'retry_later' })
    await json('/v1/account', STRICT)
    await clock.advance(APPLIED_MS)
    expect(await rows()).toMatchObject({ role_account: 'suppress', timeout: 'retry_later' })
    const read = async (path: string) => (await request(path)).text()
    const table = await read(`${path}/download`)
    const [header = '', ...lines] = table.trimEnd().split('\r\n')
    const column = header.split(',').indexOf('action')
    expect(lines.map(line => line.split(',')[column])).not.toContain('send_with_care')
    expect(await read(`${path}/download?format=ndjson`)).not.toContain('send_with_care')
    expect(await read(`${path}?include=results`)).not.toContain('send_with_care')
    expect(table).toContain('retry_later')
  })

  test('is removed by null, and only a known one is accepted', async () => {
    const { json, request } = await createTestService()
    await json('/v1/account', STRICT)
    const reset = { method: 'PATCH', body: { action_policy: null } }
    expect(await json('/v1/account', reset)).toMatchObject({ data: { action_policy: null } })
    const wrong = { method: 'PATCH', body: { action_policy: 'careful' } }
    const refused = await request('/v1/account', wrong)
    expect(refused.status).toBe(400)
    expect(await refused.json()).toMatchObject({ error: expect.stringContaining('action_policy') })
  })
})

describe('rows by their action', () => {
  const MIXED_ROWS = [...MIXED, 'catchall@a.example', 'catchall@a.example']

  /** The names before the @ of the rows of a page. */
  const names = ({ data }: Record<string, unknown>) =>
    (data as { items: { email: string }[] }).items.map(({ email }) => email.split('@')[0])

  const createList = () => createSimulatedList(MIXED_ROWS)

  test.each([
    ['send', ['valid']],
    ['send_with_care', ['risky', 'role', 'catchall', 'catchall']],
    ['retry_later', ['timeout', 'error-server']],
    ['suppress', ['invalid']],
    ['send,suppress', ['valid', 'invalid']],
  ])('are listed and downloaded: %s', async (action, expected) => {
    const { path, json, request } = await createList()
    expect(names(await json(`${path}/results?action=${action}`))).toEqual(expected)
    const sorted = await json(`${path}/results?action=${action}&sort=email&count=true`)
    expect(names(sorted)).toEqual(expected.toSorted())
    expect(sorted.data).toMatchObject({ total: expected.length, offset: 0 })
    const response = await request(`${path}/download?action=${action}`)
    const lines = (await response.text()).trimEnd().split('\r\n').slice(1)
    expect(lines.map(line => line.split('@')[0])).toEqual(expected)
  })

  test('follow the policy of the account, and combine with the other filters', async () => {
    const { path, clock, json, request } = await createList()
    await json('/v1/account', STRICT)
    await clock.advance(APPLIED_MS)
    const suppressed = `${path}/results?action=suppress`
    expect(names(await json(suppressed))).toEqual([
      ...['risky', 'invalid', 'role', 'catchall', 'catchall'],
    ])
    expect(names(await json(`${suppressed}&class=undeliverable`))).toEqual(['invalid'])
    expect(names(await json(`${suppressed}&search=ROLE`))).toEqual(['role'])
    const deduplicated = `${path}/download?action=suppress&filter=risky&deduplicate=true`
    const response = await request(deduplicated)
    expect(response.headers.get('Content-Disposition')).toContain('-risky-suppress.csv')
    expect((await response.text()).match(/^[\w-]+(?=@)/gm)).toEqual(['risky', 'role', 'catchall'])
  })

  test('are what a signed URL returns, and an unknown action is refused', async () => {
    const { path, json, request } = await createList()
    const body = { action: ['send'] }
    const { data } = await json(`${path}/download_url`, { body })
    const { url } = data as { url: string }
    const response = await request(url.replace(/^https:..[^/]+/, ''), { key: null })
    expect((await response.text()).match(/^\w+(?=@)/gm)).toEqual(['valid'])
    expect((await request(`${path}/results?action=mail`)).status).toBe(400)
  })
})
