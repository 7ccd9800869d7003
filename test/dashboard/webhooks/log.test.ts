import { describe, expect, test } from 'vitest'
import { answered } from '../../support/webhook-transport.ts'
import { EVIL, endpoint, HARMLESS, part } from './endpoint.ts'

type Home = Awaited<ReturnType<typeof endpoint>>

/** The path by which the log of a page asks for itself. */
const againOf = (page: string) =>
  (/id="log" hx-get="([^"]+)"/.exec(page)?.[1] ?? '').replaceAll('&amp;', '&')

const rowsOf = (page: string) => page.match(/<th scope="row">/g)?.length ?? 0

describe('the log of a webhook', () => {
  test('is empty at first, and says what will stand there', async () => {
    const home = await endpoint()
    expect((await home.get(home.path)).text).toContain('No deliveries yet.')
  })

  test('has a row for each event: what, when, how it stands, and what was answered', async () => {
    const home = await endpoint()
    await home.happen()
    home.receiver.answer(500)
    const id = await home.attempt()
    const { text } = await home.get(home.path)
    expect(text).toContain(`href="${home.path}/deliveries/${id}"`)
    expect(text).toContain('retry scheduled')
    expect(text).toMatch(/next attempt <time datetime="2026-06-01T12:01:00.000Z"/)
    expect(text).toContain('It answered 500: only an answer from 200 to 299')
  })

  test('is looked at again every five seconds while something is under way, and not when all is over', async () => {
    const home = await endpoint()
    const trigger = async () =>
      /hx-trigger="([^"]*log-changed[^"]*)"/.exec((await home.get(home.path)).text)?.[1]
    expect(await trigger()).toBe('log-changed from:body')
    await home.happen()
    expect(await trigger()).toBe('every 5s, log-changed from:body')
    await home.attempt()
    expect(await trigger()).toBe('log-changed from:body')
  })

  test('of a webhook that is off waits, and is not looked at again', async () => {
    const home = await endpoint()
    await home.happen()
    await home.post(`${home.path}/switch`, { active: 'false' })
    const { text } = await home.get(home.path)
    expect(text).toContain('waiting: the webhook is disabled')
    expect(text).not.toContain('every 5s')
  })

  test('that is as the page has it is not sent again, so that nothing moves under who reads', async () => {
    const home = await endpoint()
    await home.happen()
    const again = againOf((await home.get(home.path)).text)
    expect(await home.get(again, part('log'))).toMatchObject({ status: 204, text: '' })
    await home.attempt()
    const { status, text } = await home.get(again, part('log'))
    expect(status).toBe(200)
    expect(text).toContain('delivered')
    expect(text).not.toContain('<html')
    expect((await home.get(againOf(text), part('log'))).status).toBe(204)
  })

  test('is chosen from by state and event, also when it is looked at again', async () => {
    const home = await endpoint({ events: ['batch.completed', 'batch.failed'] })
    await home.happen('batch.completed')
    await home.attempt()
    await home.happen('batch.failed')
    const found = async (query: string) =>
      rowsOf((await home.get(`${home.path}?${query}`, part('log'))).text)
    expect(await found('')).toBe(2)
    expect(await found('status=&event=')).toBe(2)
    expect(await found('status=delivered')).toBe(1)
    expect(await found('event=batch.failed')).toBe(1)
    expect(await found('status=delivered&event=batch.failed')).toBe(0)
    const { text } = await home.get(`${home.path}?status=pending&event=batch.failed`)
    expect(againOf(text)).toContain('status=pending&event=batch.failed')
    expect(text).toMatch(/value="pending" selected/)
    const none = await home.get(`${home.path}?event=quota.warning`)
    expect(none.text).toContain('No matching deliveries.')
  })

  test('comes page by page, each delivery once', async () => {
    const home = await endpoint()
    for (let n = 0; n < 51; n++) await home.happen()
    const first = await home.get(home.path)
    expect(rowsOf(first.text)).toBe(50)
    const older = /href="([^"]+cursor=[^"]+)"/.exec(first.text)?.[1] ?? ''
    const second = await home.get(older.replaceAll('&amp;', '&'))
    expect(rowsOf(second.text)).toBe(1)
    expect(second.text).toContain('Newest')
    const ids = (page: string) => page.match(/id="dlv_\w+"/g) ?? []
    expect(new Set([...ids(first.text), ...ids(second.text)]).size).toBe(51)
  })

  test('that is asked for in a way that there is none says so', async () => {
    const home = await endpoint()
    expect((await home.get(`${home.path}?cursor=x`)).status).toBe(400)
  })
})

describe('one delivery', () => {
  test('shows what is sent, and each attempt with what was answered', async () => {
    const home = await endpoint()
    await home.happen('batch.completed', { job_id: EVIL })
    home.receiver.answer(
      answered(500, { 'x-made-by': EVIL, 'content-type': 'text/html' }, `<p>${EVIL}`),
    )
    const id = await home.attempt()
    const { text } = await home.get(`${home.path}/deliveries/${id}`)
    expect(text).toContain('POST https://app.test/hook')
    expect(text).toContain(`&quot;job_id&quot;: &quot;${HARMLESS}&quot;`)
    expect(text).toContain(`x-made-by: ${HARMLESS}`)
    expect(text).toContain(`&lt;p&gt;${HARMLESS}`)
    expect(text).toContain('Answered 500 after 84 ms.')
    expect(text).not.toMatch(/<img|whsec_|v1,/)
  })

  test('shows the last attempt whole, or the one that was chosen', async () => {
    const { home, id } = await triedTwice()
    const page = `${home.path}/deliveries/${id}`
    const shown = async (path: string) => /<h3>(.*?)<\/h3>/s.exec((await home.get(path)).text)?.[1]
    expect(await shown(page)).toBe('Attempt 2: No answer came after 84 ms.')
    expect(await shown(`${page}?attempt=1`)).toBe('Attempt 1: Answered 500 after 84 ms.')
    expect(await shown(`${page}?attempt=99`)).toBe('Attempt 2: No answer came after 84 ms.')
    expect(rowsOf((await home.get(page)).text)).toBe(2)
  })

  test('is looked at again while it is under way; as long as nothing happens, nothing moves', async () => {
    const { home, id } = await triedTwice()
    const page = `${home.path}/deliveries/${id}`
    const { text } = await home.get(`${page}?attempt=1`)
    const again = /id="course" hx-get="([^"]+)"/.exec(text)?.[1]?.replaceAll('&amp;', '&') ?? ''
    expect(again).toContain('attempt=1')
    expect((await home.get(again, part('course'))).status).toBe(204)
    await home.clock.advance(300_000)
    home.receiver.answer(200)
    await home.attempt()
    const { text: after } = await home.get(again, part('course'))
    expect(after).toContain('delivered')
    expect(after).toContain('<h3>Attempt 1:')
    expect(after).not.toMatch(/every 5s|<html/)
  })

  test('is sent once more where somebody asks for it', async () => {
    const home = await endpoint()
    await home.happen()
    home.receiver.answer(500)
    const id = await home.attempt({ last: true })
    const page = `${home.path}/deliveries/${id}`
    expect((await home.get(page)).text).toContain('>failed<')
    const { status, headers } = await home.post(`${page}/retry`)
    expect({ status, to: headers.get('Location') }).toEqual({ status: 303, to: page })
    const { text } = await home.get(page)
    expect(text).toContain('Resending with six new attempts.')
    expect(text).toContain('pending')
    home.receiver.answer(200)
    await home.attempt()
    expect((await home.get(page)).text).toContain('manual retry')
  })

  test('is sent to nobody while its webhook is off, and says so', async () => {
    const home = await endpoint()
    await home.happen()
    const id = await home.attempt()
    await home.post(`${home.path}/switch`, { active: 'false' })
    const page = `${home.path}/deliveries/${id}`
    const { text } = await home.get(page)
    expect(text).toContain('The webhook is disabled. Enable it to send events.')
    expect(text).not.toContain('>Resend<')
    const refused = await home.post(`${page}/retry`)
    expect(refused.status).toBe(400)
    expect(refused.text).toContain('Enable it first')
  })

  test('that there is none of is a sentence', async () => {
    const home = await endpoint()
    const { status, text } = await home.get(`${home.path}/deliveries/dlv_x`)
    expect(status).toBe(404)
    expect(text).toContain('There is no such delivery')
  })
})

async function triedTwice(): Promise<{ home: Home; id: string }> {
  const home = await endpoint()
  await home.happen()
  home.receiver.answer(500)
  await home.attempt()
  await home.clock.advance(60_000)
  home.receiver.answer({ fault: 'Nobody answered.' })
  return { home, id: await home.attempt() }
}
