import { describe, expect, test } from 'vitest'
import { PROVIDER_NAMES, PROVIDERS } from '../../../src/feedback/providers/providers.ts'
import { createTestDashboard } from '../../support/dashboard.ts'
import { SOURCE_KEYS } from '../../support/provider-requests.ts'

const EVIL = '<img src=x onerror=alert(1)>'

type TestDashboard = Awaited<ReturnType<typeof createTestDashboard>>
type Source = { readonly id: string; readonly provider: string; readonly url: string }

const nonceOf = (page: string) => /name="_once" value="([^"]+)"/.exec(page)?.[1] ?? ''

/** The texts to copy on a page. */
const copyable = (page: string) =>
  [...page.matchAll(/data-copy>([^<]+)</g)].map(([, text]) => text ?? '')

async function sourcesOf({ json }: TestDashboard): Promise<readonly Source[]> {
  const { data } = (await json('/v1/feedback/sources')) as { data: { sources: Source[] } }
  return data.sources
}

/** A dashboard with a source of Amazon SES. */
async function dashboardWithSource() {
  const dashboard = await createTestDashboard()
  await dashboard.post('/feedback/sources', { provider: 'ses', key: SOURCE_KEYS.ses })
  const [source] = await sourcesOf(dashboard)
  if (source === undefined) throw new Error('The source was not created.')
  return { dashboard, source, path: `/feedback/sources/${source.id}` }
}

describe('the list of feedback sources', () => {
  test('says what a source is while there is none', async () => {
    const dashboard = await createTestDashboard()
    const { text } = await dashboard.get('/feedback/sources')
    expect(text).toContain('No feedback sources yet')
    expect(text).toContain('Amazon SES, SendGrid, Mailgun, Postmark or SparkPost')
    expect((await dashboard.get('/feedback')).text).toContain('href="/feedback/sources"')
  })

  test('shows the provider, the last request and a part of the key', async () => {
    const { dashboard, source, path } = await dashboardWithSource()
    await dashboard.post('/feedback/sources', { provider: 'mailgun', key: SOURCE_KEYS.mailgun })
    await dashboard.database.db
      .updateTable('feedback_source')
      .set({ last_received_at: Date.parse('2026-03-21T10:30:00Z') })
      .where('id', '=', source.id)
      .execute()
    const { text } = await dashboard.get('/feedback/sources')
    const [first = '', second = ''] = /<tbody.*<\/tbody>/s.exec(text)?.[0].split('</tr>') ?? []
    expect(first).toContain(`<a href="${path}">Amazon SES</a>`)
    expect(first).toContain('2026-03-21 10:30 UTC')
    expect(first).toContain(`<code>${SOURCE_KEYS.ses}</code>`)
    expect(second).toContain('Never')
    expect(second).toContain(`<code>…${SOURCE_KEYS.mailgun.slice(-4)}</code>`)
    expect(text).not.toContain(SOURCE_KEYS.mailgun)
  })

  test('is closed to a key without the scope; one that only reads changes nothing', async () => {
    const { dashboard, path } = await dashboardWithSource()
    const reader = await dashboard.addKey({ scopes: ['dashboard', 'feedback:read'] })
    const other = await dashboard.addKey({ scopes: ['dashboard'], id: 'key_3' })
    await dashboard.signIn(reader)
    for (const one of ['/feedback/sources', path]) {
      const { status, text } = await dashboard.get(one)
      expect([one, status]).toEqual([one, 200])
      expect(text).toContain('lacks the scope &quot;feedback:write&quot;.')
      expect(text).not.toMatch(/>New source<|>Delete source</)
    }
    const form = await dashboard.get('/feedback/sources/new?provider=ses')
    expect(form.status).toBe(403)
    expect(form.text).toContain('which creating a source requires.')
    expect(form.text).not.toContain('>Create source<')
    expect((await dashboard.post(`${path}/delete`)).status).toBe(403)
    expect((await dashboard.post('/feedback/sources', { provider: 'postmark' })).status).toBe(403)
    expect(await sourcesOf(dashboard)).toHaveLength(1)
    await dashboard.signIn(other)
    for (const one of ['/feedback/sources', path]) {
      expect([one, (await dashboard.get(one)).status]).toEqual([one, 403])
    }
  })
})

describe('a new feedback source', () => {
  test.each(PROVIDER_NAMES)('of %s has the steps and the fields of the provider', async name => {
    const dashboard = await createTestDashboard()
    const { text } = await dashboard.get(`/feedback/sources/new?provider=${name}`)
    const { title, key } = PROVIDERS[name]
    expect(text).toMatch(new RegExp(`aria-current="true">${title}<`))
    expect(text.includes('name="key"')).toBe(key !== null)
    expect(/<p>In (Amazon SNS|Settings|Send)\b/.test(text)).toBe(key !== null)
    expect(text).not.toContain('class="notice')
  })

  test('starts with the choice of the provider, also for an unknown one', async () => {
    const dashboard = await createTestDashboard()
    for (const query of ['', '?provider=toString', `?provider=${encodeURIComponent(EVIL)}`]) {
      const { status, text } = await dashboard.get(`/feedback/sources/new${query}`)
      expect([query, status, text.match(/class="chip"/g)?.length]).toEqual([query, 200, 5])
      expect(text).not.toMatch(/name="provider"|<img/)
    }
    const { status, text } = await dashboard.post('/feedback/sources', { provider: EVIL })
    expect([status, text.includes('<img')]).toEqual([400, false])
  })

  test('with a key leads to its page, which shows the URL but not the key', async () => {
    const dashboard = await createTestDashboard()
    const { text: form } = await dashboard.get('/feedback/sources/new?provider=sendgrid')
    const fields = { provider: 'sendgrid', key: SOURCE_KEYS.sendgrid, _once: nonceOf(form) }
    const answers = [
      await dashboard.post('/feedback/sources', fields),
      await dashboard.post('/feedback/sources', fields),
    ]
    const sources = await sourcesOf(dashboard)
    expect(sources).toHaveLength(1)
    const path = `/feedback/sources/${sources[0]?.id}`
    for (const { status, headers } of answers)
      expect([status, headers.get('Location')]).toEqual([303, path])
    const { text } = await dashboard.get(path)
    expect(text).toContain('Feedback source created.')
    expect(copyable(text)).toEqual([`https://ev.test/v1/feedback/sendgrid/${sources[0]?.id}`])
    expect(text).toContain('No request of SendGrid has arrived yet.')
    expect(text).toContain('as the Post URL')
    expect(text).not.toContain(SOURCE_KEYS.sendgrid)
  })

  test.each(['postmark', 'sparkpost'])('of %s shows its password once', async provider => {
    const dashboard = await createTestDashboard()
    const { text: form } = await dashboard.get(`/feedback/sources/new?provider=${provider}`)
    const fields = { provider, _once: nonceOf(form) }
    const created = await dashboard.post('/feedback/sources', fields)
    expect([created.status, created.headers.get('Cache-Control')]).toEqual([200, 'no-store'])
    const [url = '', username, password = ''] = copyable(created.text)
    expect([username, password.length]).toEqual(['ev', 32])
    const [source] = await sourcesOf(dashboard)
    expect(url).toBe(source?.url)
    expect(copyable((await dashboard.post('/feedback/sources', fields)).text)[2]).toBe(password)
    const later = await Promise.all(
      ['/feedback/sources', `/feedback/sources/${source?.id}`].map(path => dashboard.get(path)),
    )
    const kept = [JSON.stringify(dashboard.lines), JSON.stringify([...dashboard.cookies])]
    for (const text of [...later.map(one => one.text), ...kept])
      expect(text).not.toContain(password)
    const sent = await dashboard.request(new URL(url).pathname, {
      key: null,
      body: provider === 'postmark' ? {} : [{ msys: {} }],
      headers: { Authorization: `Basic ${btoa(`ev:${password}`)}` },
    })
    expect(sent.status).toBe(200)
  })

  test.each([
    [
      'ses',
      EVIL,
      '&quot;ARN of the SNS topic&quot; must be the ARN of the SNS topic of Amazon SES',
    ],
    ['sendgrid', 'short', '&quot;Verification key&quot; must be the verification key of SendGrid'],
    ['mailgun', 'short', '&quot;HTTP webhook signing key&quot; must be'],
    ['mailgun', '', '&quot;HTTP webhook signing key&quot; must be'],
  ])('of %s with the key "%s" is rejected at the form', async (provider, key, sentence) => {
    const dashboard = await createTestDashboard()
    const { status, text } = await dashboard.post('/feedback/sources', { provider, key })
    expect(status).toBe(400)
    expect(/role="alert">.*?<p>(.*?)<\/p>/s.exec(text)?.[1]).toContain(sentence)
    expect(text).toContain(`name="provider" value="${provider}"`)
    expect(text).not.toContain('<img')
    expect(text.includes('value="short"')).toBe(false)
    expect(await sourcesOf(dashboard)).toEqual([])
  })
})

describe('a feedback source', () => {
  test('shows the feedback of its provider by day', async () => {
    const { dashboard, path } = await dashboardWithSource()
    const day = { account_id: 'acc_1', day: 0, kind: 'bounced' as const }
    await dashboard.database.db
      .insertInto('feedback_day')
      .values([
        { ...day, source: 'ses', pieces: 1_234 },
        { ...day, source: 'api', pieces: 5_678 },
      ])
      .execute()
    const { text } = await dashboard.get(path)
    expect(text).toContain('1,234')
    expect(text).not.toContain('5,678')
  })

  test('is deleted after a confirmation', async () => {
    const { dashboard, path } = await dashboardWithSource()
    const { text } = await dashboard.get(path)
    expect(text).toMatch(/<details class="confirm">.*?Yes, delete source/s)
    const deleted = await dashboard.post(`${path}/delete`)
    expect([deleted.status, deleted.headers.get('Location')]).toEqual([303, '/feedback/sources'])
    expect((await dashboard.get('/feedback/sources')).text).toContain('Feedback source deleted.')
    expect(await sourcesOf(dashboard)).toEqual([])
    expect((await dashboard.get(path)).status).toBe(404)
    expect((await dashboard.post(`${path}/delete`)).status).toBe(404)
  })

  test('has a warning if providers cannot reach the service', async () => {
    const dashboard = await createTestDashboard({ settings: { baseUrl: 'http://127.0.0.1:8080' } })
    const { text } = await dashboard.get('/feedback/sources/new?provider=postmark')
    expect(text).toContain('The URL of this service is http://127.0.0.1:8080.')
  })
})
