import { describe, expect, test } from 'vitest'
import { answered } from '../../support/webhook-transport.ts'
import { EVIL, endpoint, HARMLESS, part } from './endpoint.ts'

type TestDashboard = Awaited<ReturnType<typeof endpoint>>

/** Returns the URL that the log polls. */
const againOf = (page: string) =>
  (/id="log" hx-get="([^"]+)"/.exec(page)?.[1] ?? '').replaceAll('&amp;', '&')

const rowsOf = (page: string) => page.match(/<th scope="row">/g)?.length ?? 0

describe('the log of a webhook', () => {
  test('is empty at first, with an explanation', async () => {
    const dashboard = await endpoint()
    expect((await dashboard.get(dashboard.path)).text).toContain('No deliveries yet.')
  })

  test('has a row for each event with time, state and response', async () => {
    const dashboard = await endpoint()
    await dashboard.happen()
    dashboard.receiver.answer(500)
    const id = await dashboard.attempt()
    const { text } = await dashboard.get(dashboard.path)
    expect(text).toContain(`href="${dashboard.path}/deliveries/${id}"`)
    expect(text).toContain('Retry scheduled')
    expect(text).toMatch(/next attempt <time datetime="2026-06-01T12:01:00.000Z"/)
    expect(text).toContain('It answered 500. Only a status from 200 to 299')
  })

  test('is polled every five seconds while a delivery is pending', async () => {
    const dashboard = await endpoint()
    const trigger = async () =>
      /hx-trigger="([^"]*log-changed[^"]*)"/.exec((await dashboard.get(dashboard.path)).text)?.[1]
    expect(await trigger()).toBe('log-changed from:body')
    await dashboard.happen()
    expect(await trigger()).toBe('every 5s, log-changed from:body')
    await dashboard.attempt()
    expect(await trigger()).toBe('log-changed from:body')
  })

  test('of a disabled webhook waits and is not polled', async () => {
    const dashboard = await endpoint()
    await dashboard.happen()
    await dashboard.post(`${dashboard.path}/switch`, { active: 'false' })
    const { text } = await dashboard.get(dashboard.path)
    expect(text).toContain('waiting: the webhook is disabled')
    expect(text).not.toContain('every 5s')
  })

  test('returns 204 if it is unchanged', async () => {
    const dashboard = await endpoint()
    await dashboard.happen()
    const again = againOf((await dashboard.get(dashboard.path)).text)
    expect(await dashboard.get(again, part('log'))).toMatchObject({ status: 204, text: '' })
    await dashboard.attempt()
    const { status, text } = await dashboard.get(again, part('log'))
    expect(status).toBe(200)
    expect(text).toContain('Delivered')
    expect(text).not.toContain('<html')
    expect((await dashboard.get(againOf(text), part('log'))).status).toBe(204)
  })

  test('is filtered by state and event, when polled too', async () => {
    const dashboard = await endpoint({ events: ['batch.completed', 'batch.failed'] })
    await dashboard.happen('batch.completed')
    await dashboard.attempt()
    await dashboard.happen('batch.failed')
    const found = async (query: string) =>
      rowsOf((await dashboard.get(`${dashboard.path}?${query}`, part('log'))).text)
    expect(await found('')).toBe(2)
    expect(await found('status=&event=')).toBe(2)
    expect(await found('status=delivered')).toBe(1)
    expect(await found('event=batch.failed')).toBe(1)
    expect(await found('status=delivered&event=batch.failed')).toBe(0)
    expect(await found('search=BATCH.failed')).toBe(1)
    expect(await found('search=batch&status=delivered')).toBe(1)
    expect(await found('search=absent')).toBe(0)
    const { text } = await dashboard.get(`${dashboard.path}?status=pending&event=batch.failed`)
    expect(againOf(text)).toContain('status=pending&event=batch.failed')
    expect(text).toMatch(/value="pending" selected/)
    const none = await dashboard.get(`${dashboard.path}?event=quota.warning`)
    expect(none.text).toContain('No matching deliveries.')
  })

  test('is paginated, each delivery once', async () => {
    const dashboard = await endpoint()
    for (let n = 0; n < 51; n++) await dashboard.happen()
    const first = await dashboard.get(dashboard.path)
    expect(rowsOf(first.text)).toBe(50)
    const older = /href="([^"]+cursor=[^"]+)"/.exec(first.text)?.[1] ?? ''
    const second = await dashboard.get(older.replaceAll('&amp;', '&'))
    expect(rowsOf(second.text)).toBe(1)
    expect(second.text).toContain('Newest')
    const ids = (page: string) => page.match(/id="dlv_\w+"/g) ?? []
    expect(new Set([...ids(first.text), ...ids(second.text)]).size).toBe(51)
  })

  test('shows the error of an invalid filter', async () => {
    const dashboard = await endpoint()
    expect((await dashboard.get(`${dashboard.path}?cursor=x`)).status).toBe(400)
  })
})

describe('a delivery', () => {
  test('shows the request and each attempt with its response', async () => {
    const dashboard = await endpoint()
    await dashboard.happen('batch.completed', { job_id: EVIL })
    dashboard.receiver.answer(
      answered(500, { 'x-made-by': EVIL, 'content-type': 'text/html' }, `<p>${EVIL}`),
    )
    const id = await dashboard.attempt()
    const { text } = await dashboard.get(`${dashboard.path}/deliveries/${id}`)
    expect(text).toContain('POST https://app.test/hook')
    expect(text).toContain(`&quot;job_id&quot;: &quot;${HARMLESS}&quot;`)
    expect(text).toContain(`x-made-by: ${HARMLESS}`)
    expect(text).toContain(`&lt;p&gt;${HARMLESS}`)
    expect(text).toContain('Responded 500 after 84 ms.')
    expect(text).toContain('webhook-signature: v1,')
    expect(text).not.toMatch(/<img|whsec_/)
  })

  test('shows the last attempt in full, or the selected one', async () => {
    const { dashboard, id } = await triedTwice()
    const page = `${dashboard.path}/deliveries/${id}`
    const shown = async (path: string) =>
      /<h3>(.*?)<\/h3>/s.exec((await dashboard.get(path)).text)?.[1]
    expect(await shown(page)).toBe('Attempt 2: No response after 84 ms.')
    expect(await shown(`${page}?attempt=1`)).toBe('Attempt 1: Responded 500 after 84 ms.')
    expect(await shown(`${page}?attempt=99`)).toBe('Attempt 2: No response after 84 ms.')
    expect(rowsOf((await dashboard.get(page)).text)).toBe(2)
  })

  test('is polled while it is pending, and returns 204 if it is unchanged', async () => {
    const { dashboard, id } = await triedTwice()
    const page = `${dashboard.path}/deliveries/${id}`
    const { text } = await dashboard.get(`${page}?attempt=1`)
    const again = /id="course" hx-get="([^"]+)"/.exec(text)?.[1]?.replaceAll('&amp;', '&') ?? ''
    expect(again).toContain('attempt=1')
    expect((await dashboard.get(again, part('course'))).status).toBe(204)
    await dashboard.clock.advance(300_000)
    dashboard.receiver.answer(200)
    await dashboard.attempt()
    const { text: after } = await dashboard.get(again, part('course'))
    expect(after).toContain('Delivered')
    expect(after).toContain('<h3>Attempt 1:')
    expect(after).not.toMatch(/every 5s|<html/)
  })

  test('is resent on request', async () => {
    const dashboard = await endpoint()
    await dashboard.happen()
    dashboard.receiver.answer(500)
    const id = await dashboard.attempt({ last: true })
    const page = `${dashboard.path}/deliveries/${id}`
    expect((await dashboard.get(page)).text).toContain('>Failed<')
    const { status, headers } = await dashboard.post(`${page}/retry`)
    expect({ status, to: headers.get('Location') }).toEqual({ status: 303, to: page })
    const { text } = await dashboard.get(page)
    expect(text).toContain('Resending with six new attempts.')
    expect(text).toContain('Pending')
    dashboard.receiver.answer(200)
    await dashboard.attempt()
    expect((await dashboard.get(page)).text).toContain('Resent')
  })

  test('is not resent while its webhook is disabled', async () => {
    const dashboard = await endpoint()
    await dashboard.happen()
    const id = await dashboard.attempt()
    await dashboard.post(`${dashboard.path}/switch`, { active: 'false' })
    const page = `${dashboard.path}/deliveries/${id}`
    const { text } = await dashboard.get(page)
    expect(text).toContain('The webhook is disabled. Enable it to send events.')
    expect(text).not.toContain('>Resend<')
    const refused = await dashboard.post(`${page}/retry`)
    expect(refused.status).toBe(400)
    expect(refused.text).toContain('Enable it first')
  })

  test('returns 404 if it does not exist', async () => {
    const dashboard = await endpoint()
    const { status, text } = await dashboard.get(`${dashboard.path}/deliveries/dlv_x`)
    expect(status).toBe(404)
    expect(text).toContain('Delivery dlv_x of webhook')
  })
})

async function triedTwice(): Promise<{ dashboard: TestDashboard; id: string }> {
  const dashboard = await endpoint()
  await dashboard.happen()
  dashboard.receiver.answer(500)
  await dashboard.attempt()
  await dashboard.clock.advance(60_000)
  dashboard.receiver.answer({ fault: 'Nobody answered.' })
  return { dashboard, id: await dashboard.attempt() }
}
