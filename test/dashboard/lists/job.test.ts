import { describe, expect, test } from 'vitest'
import { write } from '../../../src/db/database.ts'
import { cancelJob, failJob, startJob } from '../../../src/jobs/job-state.ts'
import { MINUTE } from '../../../src/platform/clock.ts'
import { giveResults, MIXED, seedJob } from '../../support/job-rows.ts'
import { createListsDashboard, EVIL, EVIL_SHOWN } from './room.ts'

type TestDashboard = Awaited<ReturnType<typeof createListsDashboard>>

/** A dashboard with a list of these rows. */
async function dashboardWithList(seed: Partial<Parameters<typeof seedJob>[1]> = {}) {
  const services = await createListsDashboard()
  await seedJob(services.database, { texts: MIXED, name: 'March', ...seed })
  const state = async () =>
    (await services.database.db.selectFrom('job').select('state').executeTakeFirst())?.state
  return { ...services, state, page: (query = '') => services.get(`/lists/job_a${query}`) }
}

/** Returns the row numbers on a page. */
const numbersOf = (text: string) =>
  [...text.matchAll(/<td class="number" data-label="Row">([\d,]+)</g)].map(([, number]) => number)

/** Returns the target of a link, without the fragment. */
const linkOf = (text: string, label: string) =>
  new RegExp(`href="([^"]+)"[^>]*>${label}<`)
    .exec(text)?.[1]
    ?.replaceAll('&amp;', '&')
    .replace(/#rows$/, '')

const plain = (text: string) =>
  text
    .replaceAll('<wbr>', '')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')

describe('the page of a list', () => {
  test('that is active shows its progress and can be cancelled', async () => {
    const { page, database } = await dashboardWithList({ done: 0 })
    const waiting = (await page()).text
    expect(plain(waiting)).toContain('The list starts when a worker is free.')
    expect(waiting).toContain('data-events="/lists/job_a/events"')
    await giveResults(database, 'job_a', 2)
    const processing = (await page()).text
    expect(plain(processing)).toContain('Processing as fast as the mail servers allow.')
    expect(plain(processing)).toContain('33% Done of 6 2 Per second –')
    expect(processing).toContain('<progress class="unseen" id="live-meter" max="6" value="2"')
    expect(processing).toContain('<b>1</b> <small>50.0%<')
    expect(linkOf(processing, 'Risky')).toBe('/lists/job_a?class=risky')
    expect(processing).toContain('Pending')
    expect(processing).toContain('/lists/job_a/cancel')
    expect(processing).not.toContain('/lists/job_a/resume')
  })

  test('that is active counts its reasons, and again for the stream', async () => {
    const { page, get, database, clock } = await dashboardWithList({ done: 0 })
    expect(plain((await page()).text)).toContain('By reason No results yet.')
    await giveResults(database, 'job_a', 2)
    await clock.advance(MINUTE)
    expect(plain((await page()).text)).toContain('Rows by reason Accepted 1 50.0%')
    await giveResults(database, 'job_a', 4, 2)
    await clock.advance(MINUTE)
    await cancelJob(database, 'job_a')
    const [, data = ''] = /data: (.*)/.exec((await get('/lists/job_a/events')).text) ?? []
    const reasons = (JSON.parse(data) as { parts: string[] }).parts.at(-1) ?? ''
    expect(reasons).toContain('<div id="live-reasons">')
    expect(plain(reasons)).toMatch(/^ *Rows by reason Accepted 1 25\.0%/)
  })

  test('that is active and long shows its reasons with the first event', async () => {
    const texts = Array.from({ length: 20_001 }, (_, n) => `valid${n}@a.example`)
    const { page } = await dashboardWithList({ texts, done: 1 })
    const { text } = await page()
    expect(plain(text)).toContain('By reason Counting the results …')
    expect(text).toContain('<div id="live-reasons">')
  })

  test('creates a link to its results, which needs no key', async () => {
    const { post, database } = await dashboardWithList()
    const created = await post('/lists/job_a/link', { link_format: 'csv', deliverable: 'on' })
    expect(created.status).toBe(200)
    const text = created.text.replaceAll('&amp;', '&')
    expect(text).toMatch(
      /\/v1\/jobs\/job_a\/download\?format=csv&filter=deliverable&key_id=[^"<\s]+&signature=[0-9a-f]{64}/,
    )
    const entries = await database.db.selectFrom('audit').select(['action', 'actor']).execute()
    expect(entries).toContainEqual({ action: 'results.shared', actor: 'session' })
    expect((await post('/lists/job_a/link', { link_format: 'pdf' })).status).toBe(400)
  })

  test('shows the metadata of the list', async () => {
    const { page } = await dashboardWithList({ source: { metadata: { customer: EVIL } } })
    expect((await page()).text).toContain(`Metadata: <code>customer</code> ${EVIL_SHOWN}.`)
  })

  test('that is completed shows its results by class, reason and provider', async () => {
    const { page, clock, database } = await dashboardWithList({ done: 0 })
    await startJob(database, 'job_a')
    await clock.advance(MINUTE)
    await giveResults(database, 'job_a', 6)
    const { text } = await page()
    expect(plain(text)).toContain('Verified 6 rows in 1 min.')
    expect(plain(text)).toContain('By class 6 Deliverable 1 16.7% Risky 2 33.3%')
    expect(plain(text)).toMatch(
      /Expected bounces Mail to all addresses \d+\.\d% \(.*\) If you follow the actions \d/,
    )
    expect(plain(text)).toContain('Timeout 1 16.7%')
    expect(plain(text)).toContain('Timeout The mail server did not answer in time. What to do:')
    expect(plain(text)).toContain('Rows by provider No mail server probed 6 100%')
    expect(text).not.toContain('data-events')
    expect(text).not.toMatch(/job_a\/(cancel|resume)/)
  })

  test('that was cancelled or failed explains what happened and can be resumed', async () => {
    const { page, database } = await dashboardWithList({ done: 2 })
    await cancelJob(database, 'job_a')
    const cancelled = (await page()).text
    expect(plain(cancelled)).toContain('Stopped after 2 of 6 rows. The results so far')
    expect(cancelled).toContain('/lists/job_a/resume')
    await write(database, trx => failJob(trx, 'job_a', 'server_error', database.clock.now()))
    const failed = plain((await page()).text)
    expect(failed).toContain('Internal error after 2 of 6')
    expect(failed).toContain('(server_error)')
    expect(failed).toContain('send the list ID job_a')
  })

  test('says what to do in terms of the page, not of the API, when an action fails', async () => {
    const { post, database } = await dashboardWithList({ done: 2 })
    await cancelJob(database, 'job_a')
    const refused = await post('/lists/job_a/finish')
    expect(refused.status).toBe(409)
    expect(plain(refused.text)).toContain('The job has been cancelled. Resume it first.')
    expect(refused.text).not.toContain('/v1/jobs')
  })

  test('of a long list loads its charts later; without JavaScript they are a page', async () => {
    const texts = Array.from({ length: 20_001 }, (_, n) => `valid${n}@a.example`)
    const { page, get } = await dashboardWithList({ texts })
    expect((await page()).text).toContain('hx-get="/lists/job_a/charts" hx-trigger="load"')
    const whole = (await get('/lists/job_a/charts')).text
    expect(whole).toContain('<h1>March</h1>')
    const part = (await get('/lists/job_a/charts', { 'HX-Request': 'true' })).text
    expect(plain(part)).toContain('Deliverable 20,001 100%')
    expect(part).not.toContain('<h1>')
  })

  test('returns 404 for another account, with all its parts', async () => {
    const services = await dashboardWithList()
    await services.asAnother()
    for (const path of ['', '/charts', '/events', '/download']) {
      const { status, text } = await services.get(`/lists/job_a${path}`)
      expect([path, status, text.includes('a.example')]).toEqual([path, 404, false])
    }
    for (const path of ['cancel', 'finish', 'resume', 'delete']) {
      expect([path, (await services.post(`/lists/job_a/${path}`)).status]).toEqual([path, 404])
    }
    expect(await services.state()).toBe('completed')
  })
})

describe('the rows of a list', () => {
  test('have class, reason and mail server reply', async () => {
    const { page, database } = await dashboardWithList({ texts: ['valid@a.example'] })
    await says(database, '2.1.5 Ok')
    expect(plain((await page()).text)).toContain(
      '1 valid@a.example Did you mean v@b.example? Deliverable Accepted – 250 2.1.5 Ok',
    )
  })

  test('render markup in addresses, replies, suggestions and names as text', async () => {
    const { page, get, database } = await dashboardWithList({ texts: [EVIL], name: EVIL })
    await says(database, EVIL, EVIL)
    const part = await get('/lists/job_a', { 'HX-Request': 'true', 'HX-Target': 'rows' })
    for (const { text } of [await page(), part]) {
      expect(text.split(EVIL_SHOWN).length).toBeGreaterThan(2)
      expect(text).not.toContain('<img')
    }
  })

  test('are filtered by class, reason and part of the address', async () => {
    const { page } = await dashboardWithList()
    const shown = async (query: string) => numbersOf((await page(query)).text)
    expect(await shown('')).toEqual(['1', '2', '3', '4', '5', '6'])
    expect(await shown('?class=risky&class=unknown')).toEqual(['2', '4', '5', '6'])
    expect(await shown('?reason=timeout')).toEqual(['4'])
    expect(await shown('?search=VALID')).toEqual(['1', '3'])
    expect(await shown('?search=valid&class=undeliverable&reason=')).toEqual(['3'])
    expect((await page('?search=nobody')).text).toContain('No matching rows.')
  })

  test('keep the filter in the form and across pages', async () => {
    const texts = Array.from({ length: 70 }, (_, n) => `${n % 2 ? 'risky' : 'valid'}${n}@a.example`)
    const { page, get } = await dashboardWithList({ texts })
    const first = (await page('?class=risky&search=A.EXAMPLE')).text
    expect(first).toContain('value="A.EXAMPLE"')
    expect(first).toContain('<input type="hidden" name="class" value="risky" />')
    expect(first).toMatch(/id="chip-risky"[^>]* aria-current="true"/)
    expect(numbersOf(first)).toHaveLength(25)
    const next = linkOf(first, 'Next page') ?? ''
    const second = (await get(next)).text
    expect(numbersOf(second)).toEqual(['52', '54', '56', '58', '60', '62', '64', '66', '68', '70'])
    expect(second).not.toContain('Next page')
    expect(linkOf(second, 'First page')).toBe('/lists/job_a?search=A.EXAMPLE&class=risky')
    expect(second).toContain('<input type="hidden" name="class" value="risky" />')
  })

  test('start at any requested row', async () => {
    const { page } = await dashboardWithList()
    expect(numbersOf((await page('?row=5')).text)).toEqual(['5', '6'])
    expect((await page('?row=1,000')).text).toContain('No rows at or after row 1,000.')
    for (const row of ['x', '0', '1.5']) {
      const { status, text } = await page(`?row=${row}`)
      expect([row, status, text.includes('role="alert"')]).toEqual([row, 200, true])
    }
  })

  test('are searched in the whole of a long list, and counted', async () => {
    const { page, database } = await dashboardWithList({ texts: ['valid@a.example'] })
    await database.db.updateTable('item').set({ position: 150_000 }).execute()
    const { text } = await page('?search=VALID')
    expect(numbersOf(text)).toEqual(['150,000'])
    expect(plain(text)).toContain('1–1 of 1')
  })

  test('say which they are and how many match', async () => {
    const texts = Array.from(
      { length: 2_636 },
      (_, n) => `${n % 2 ? 'risky' : 'valid'}${n}@a.example`,
    )
    const { page, get } = await dashboardWithList({ texts })
    const first = (await page()).text
    expect(plain(first)).toContain('1–25 of 2,636')
    const second = (await get(linkOf(first, 'Next page') ?? '')).text
    expect(plain(second)).toContain('26–50 of 2,636')
    expect(plain((await page('?row=2,630')).text)).toContain('2,630–2,636 of 2,636')
    expect(plain((await page('?class=risky')).text)).toContain('1–25 of 1,318')
  })

  test('are sorted by links in the heading, which reverse the order and keep the filter', async () => {
    const { page, get } = await dashboardWithList()
    const { text } = await page('?class=risky&class=unknown&row=2')
    expect(text).toMatch(/<th scope="col" class="number" aria-sort="ascending"><a id="sort-row"/)
    expect(text.split('aria-sort=')).toHaveLength(2)
    const up = linkOf(text, 'Address') ?? ''
    expect(up).toBe('/lists/job_a?sort=email&class=risky&class=unknown')
    const ascending = (await get(up)).text
    expect(numbersOf(ascending)).toEqual(['5', '2', '6', '4'])
    expect(ascending).toMatch(/<th scope="col" aria-sort="ascending"><a id="sort-email"/)
    // A row number is a position in the list, not in another order.
    expect(ascending).not.toContain('From row')
    const down = linkOf(ascending, 'Address') ?? ''
    expect(down).toBe('/lists/job_a?sort=email&order=desc&class=risky&class=unknown')
    const descending = (await get(down)).text
    expect(numbersOf(descending)).toEqual(['4', '6', '2', '5'])
    expect(descending).toContain('aria-sort="descending"')
    expect(numbersOf((await page('?sort=name')).text)).toEqual(['1', '2', '3', '4', '5', '6'])
  })

  test('keep their order across pages and filters', async () => {
    const texts = Array.from(
      { length: 60 },
      (_, n) => `valid${String(n).padStart(2, '0')}@a.example`,
    )
    const { page, get } = await dashboardWithList({ texts })
    const first = (await page('?sort=email&order=desc')).text
    expect(numbersOf(first).slice(0, 2)).toEqual(['60', '59'])
    const second = (await get(linkOf(first, 'Next page') ?? '')).text
    expect(numbersOf(second)[0]).toBe('35')
    expect(plain(second)).toContain('26–50 of 60')
    expect(second).toContain(
      'id="chip-risky" href="/lists/job_a?sort=email&amp;order=desc&amp;class=risky#rows"',
    )
    expect(second).toContain('<input type="hidden" name="order" value="desc" />')
  })

  test('show the reply and the suggestion in full, while the list runs too', async () => {
    const reply = `5.1.1 <carl.grun0@severn-rooms.test>: ${'Recipient address rejected. '.repeat(6)}End`
    const suggestion = 'carl.lefevre1@greenroof.test'
    for (const done of [1, 2]) {
      const texts = ['valid@a.example', 'valid2@a.example']
      const { page, database } = await dashboardWithList({ texts, done })
      await says(database, reply, suggestion)
      const { text } = await page()
      expect(plain(text)).toContain('250 5.1.1 &lt;carl.grun0@severn-rooms.test&gt;: Recipient')
      expect(plain(text)).toContain('Recipient address rejected. End')
      expect(plain(text)).toContain(`Did you mean ${suggestion}?`)
      expect(text).not.toContain('<details class="cut"')
    }
  })

  test('have no characters that control the text around them', async () => {
    const { page, database } = await dashboardWithList({ texts: ['valid@a.example'] })
    const text = 'a\u202eb\u0007c@a.example'
    await database.db.updateTable('item').set({ text }).execute()
    for (const query of ['', '?open=1']) {
      const shown = (await page(query)).text
      expect(plain(shown)).toContain('a\ufffdb\ufffdc@a.example')
      expect(shown).not.toMatch(/[\u202e\u0007]/)
    }
  })

  test('show an error for an invalid row number', async () => {
    const { page } = await dashboardWithList()
    for (const row of ['banana', '0', '-1', '1.5', '1e99', '<b>']) {
      const { text } = await page(`?row=${encodeURIComponent(row)}`)
      const shown = row.replace('<b>', '&lt;b&gt;')
      expect(text).toContain(
        `&quot;${shown}&quot; is not a row number. Enter a whole number of at least 1.`,
      )
      expect(numbersOf(text)).toEqual([])
    }
    expect(numbersOf((await page('?row=%200,002%20')).text)[0]).toBe('2')
  })

  test('are rendered without the form while a text is typed, which is one step of the history', async () => {
    const { get } = await dashboardWithList()
    const search = (current: string) =>
      get('/lists/job_a?search=valid&reason=&sort=row', {
        'HX-Request': 'true',
        'HX-Target': 'found',
        'HX-Current-URL': `https://ev.test/lists/job_a${current}`,
      })
    const first = await search('?class=risky')
    expect(numbersOf(first.text)).toEqual(['1', '3'])
    expect(first.text).not.toContain('name="search" type="search"')
    expect(first.headers.get('HX-Push-Url')).toBe('/lists/job_a?search=valid')
    const second = await search('?search=val')
    expect(second.headers.get('HX-Push-Url')).toBeNull()
    expect(second.headers.get('HX-Replace-Url')).toBe('/lists/job_a?search=valid')
  })

  test('are rendered alone for htmx', async () => {
    const { get } = await dashboardWithList()
    const headers = { 'HX-Request': 'true', 'HX-Target': 'rows' }
    const { text } = await get('/lists/job_a?class=risky', headers)
    expect(numbersOf(text)).toEqual(['2', '6'])
    expect(text).not.toContain('<html')
    expect(text).toContain('id="rows-said" hx-swap-oob="innerHTML"')
  })
})

describe('the details of a row', () => {
  const PANEL = /<dialog id="panel".*<\/dialog>/s
  const panelOf = (text: string) => plain(PANEL.exec(text)?.[0] ?? '')

  test('are opened by a link in its row, in the page or alone, and closed by one', async () => {
    const { page, get, database } = await dashboardWithList()
    await says(database, '2.1.5 Ok')
    const { text } = await page('?class=risky')
    expect(text).toContain('<dialog id="panel" class="panel" aria-label="Row"></dialog>')
    const href = linkOf(text, 'risky@<wbr>a.example')?.replace('#panel', '') ?? ''
    expect(href).toBe('/lists/job_a?open=2&class=risky')
    const headers = { 'HX-Request': 'true', 'HX-Target': 'panel' }
    const part = await get(href, headers)
    expect(part.text).not.toContain('<html')
    expect(part.headers.get('HX-Push-Url')).toBe(href)
    for (const one of [part.text, (await get(href)).text]) {
      expect(panelOf(one)).toContain('Row 2 risky@a.example Close Deliverable Re-verify')
      expect(panelOf(one)).toContain('Did you mean v@b.example ?')
      expect(panelOf(one)).toContain('Reply: 250 2.1.5 Ok')
      expect(panelOf(one)).toContain('MX 10 mx.a.example')
      expect(panelOf(one)).toContain('SMTP dialogue Lists store only the final reply.')
      expect(one).toContain('aria-labelledby="panel-title" open')
      expect(one).toContain('href="/lists/job_a?class=risky#rows" data-close')
    }
  })

  test('say so if there is no result, or no such row', async () => {
    const { page, database } = await dashboardWithList({ done: 1 })
    expect(panelOf((await page('?open=2')).text)).toContain('This row has no result yet.')
    expect(panelOf((await page('?open=7')).text)).toContain(
      'There is no row 7. The rows are numbered from 1 to 6.',
    )
    const evil = await page(`?open=${encodeURIComponent(EVIL)}`)
    expect([evil.status, evil.text.includes('<img')]).toEqual([200, false])
    await database.db
      .updateTable('item')
      .set({ result: 'null', text: '' })
      .where('position', '=', 1)
      .execute()
    expect(panelOf((await page('?open=1')).text)).toContain('The address was erased.')
  })

  test('render markup in addresses, replies and suggestions as text', async () => {
    const { page, database } = await dashboardWithList({ texts: [EVIL] })
    await says(database, EVIL, EVIL)
    const { text } = await page('?open=1')
    expect(PANEL.exec(text)?.[0].split(EVIL_SHOWN).length).toBeGreaterThan(2)
    expect(text).not.toContain('<img')
  })

  test('verify the address or the suggestion, and the list keeps its result', async () => {
    const { post, get, database } = await dashboardWithList({ sandbox: true })
    await says(database, 'Ok', 'valid7@b.example')
    const path = '/lists/job_a/rows/3/verify'
    const part = await post(path, { subject: 'address' }, { 'HX-Request': 'true' })
    expect(plain(part.text)).toMatch(/^ *New result for invalid@a.example Undeliverable/)
    const whole = await post(path, { subject: 'suggestion' })
    expect(panelOf(whole.text)).toContain('New result for valid7@b.example Deliverable')
    expect(panelOf((await get('/lists/job_a?open=3')).text)).not.toContain('New result')
    const { text } = await get('/lists/job_a')
    expect(numbersOf(text)).toHaveLength(6)
  })

  test('verify no row of another account or without the scope', async () => {
    const services = await dashboardWithList()
    await services.as('jobs:read')
    expect((await services.page('?open=1')).text).not.toContain('/rows/1/verify')
    const path = '/lists/job_a/rows/1/verify'
    expect((await services.post(path, { subject: 'address' })).text).not.toContain(
      'New result for valid@a.example Deliverable',
    )
    await services.asAnother()
    expect((await services.post(path, { subject: 'address' })).status).toBe(404)
    expect((await services.page('?open=1')).status).toBe(404)
  })
})

describe('the filter of a list', () => {
  test('is a chip for each class with its count, all of them by default', async () => {
    const { page } = await dashboardWithList()
    const currentChips = (text: string) =>
      [...text.matchAll(/id="chip-(\w+)"[^>]* aria-current="true"/g)].map(([, name]) => name)
    const { text } = await page()
    expect(currentChips(text)).toEqual(['all'])
    expect(plain(text)).toContain('All 6 Deliverable 1 Risky 2 Undeliverable 1 Unknown 2')
    const unknown = (await page('?class=unknown')).text
    expect(currentChips(unknown)).toEqual(['unknown'])
    expect(linkOf(unknown, 'All')).toBeUndefined()
    const all = '?class=deliverable&class=risky&class=undeliverable&class=unknown'
    expect(currentChips((await page(all)).text)).toEqual(['all'])
  })

  test('is set by the charts and by the reason of a row, and shows that reason', async () => {
    const { page } = await dashboardWithList()
    const { text } = await page()
    expect(linkOf(text, 'Unknown')).toBe('/lists/job_a?class=unknown')
    expect(linkOf(text, 'Timeout')).toBe('/lists/job_a?reason=timeout')
    const timeout = (await page('?reason=timeout')).text
    expect(timeout).toMatch(/id="chip-reason" href="\/lists\/job_a#rows"[^>]* aria-current="true"/)
    expect(numbersOf(timeout)).toEqual(['4'])
  })

  test('of an action is set by the expected bounces, and shows that action', async () => {
    const { page } = await dashboardWithList()
    expect(linkOf((await page()).text, 'Send')).toBe('/lists/job_a?action=send')
    const { text } = await page('?action=suppress')
    expect(text).toMatch(/id="chip-action" href="\/lists\/job_a#rows"[^>]* aria-current="true"/)
    expect(text).toContain('<option value="suppress" selected>Suppress</option>')
    const [send, suppress, all] = await Promise.all(
      ['?action=send', '?action=suppress', '?action=none'].map(query => page(query)),
    )
    expect(numbersOf(send?.text ?? '')).not.toEqual(numbersOf(suppress?.text ?? ''))
    expect(numbersOf(all?.text ?? '')).toHaveLength(6)
  })
})

test('the chart of reasons has a segment for each class of a reason', async () => {
  const texts = [1, 2, 3].map(n => `catchall${n}@a.example`)
  const { page, database } = await dashboardWithList({ texts })
  await database.db
    .updateTable('item')
    .set({ class: 'deliverable' })
    .where('position', '=', 2)
    .execute()
  const chart = /<caption class="unseen">Rows by reason<.*?<\/table>/s.exec(
    (await page()).text,
  )?.[0]
  const segments = [...(chart ?? '').matchAll(/class="fill-(\w+)".*?width="([\d.]+)"/g)]
  expect(segments.map(([, kind, width]) => [kind, width])).toEqual([
    ['risky', '66.67'],
    ['deliverable', '33.33'],
  ])
})

describe('what an active list waits for', () => {
  test('is shown with the time of the next attempt, and survives markup in a name', async () => {
    const { page, database, clock } = await dashboardWithList({ done: 0 })
    await startJob(database, 'job_a')
    await database.db
      .updateTable('item')
      .set({
        state: 'routed',
        operator: `<b>.test`,
        egress: 'a',
        due_at: clock.now() + MINUTE,
      })
      .execute()
    const { text } = await page()
    expect(plain(text)).toContain(
      '6 addresses at &lt;b&gt;.test: the mail server deferred them. Next attempt at 2026-06-01 12:01 UTC .',
    )
    expect(text).toContain('<time datetime="2026-06-01T12:01:00.000Z"')
    expect(plain(text)).toContain('Time left 1 minute')
  })
})

describe('an action on a list', () => {
  test('finishes it, and offers that once', async () => {
    const { post, page, database, get } = await dashboardWithList({ done: 2 })
    expect((await page()).text).toContain('action="/lists/job_a/finish"')
    expect((await post('/lists/job_a/finish')).headers.get('Location')).toBe('/lists/job_a')
    const finishing = (await get('/lists/job_a')).text
    expect(finishing).toContain('Finishing the list. Rows in flight end normally.')
    expect(finishing).not.toContain('action="/lists/job_a/finish"')
    const job = await database.db.selectFrom('job').select('finish_requested_at').executeTakeFirst()
    expect(job?.finish_requested_at).not.toBeNull()
  })

  test('cancels, resumes and deletes it', async () => {
    const services = await dashboardWithList({ done: 2 })
    const { post, get, state, worker } = services
    expect((await post('/lists/job_a/cancel')).headers.get('Location')).toBe('/lists/job_a')
    expect([await state(), worker]).toMatchObject(['cancelled', { dropped: ['job_a'] }])
    expect((await get('/lists/job_a')).text).toContain('List cancelled.')
    expect((await post('/lists/job_a/resume')).headers.get('Location')).toBe('/lists/job_a')
    expect([await state(), worker]).toMatchObject(['processing', { taken: ['job_a'] }])
    expect((await post('/lists/job_a/delete')).headers.get('Location')).toBe('/lists')
    expect(await state()).toBeUndefined()
    expect((await get('/lists')).text).toContain('List deleted')
  })

  test('resumes it once after a double click', async () => {
    const { post, page, database } = await dashboardWithList({ done: 2 })
    await cancelJob(database, 'job_a')
    const [, once = ''] = /name="_once" value="([^"]+)"/.exec((await page()).text) ?? []
    const first = await post('/lists/job_a/resume', { _once: once })
    const second = await post('/lists/job_a/resume', { _once: once })
    expect([first.status, second.status]).toEqual([303, 303])
  })

  test('that its state does not allow shows an error', async () => {
    const { post } = await dashboardWithList()
    const cancelled = await post('/lists/job_a/cancel')
    expect(cancelled.status).toBe(409)
    expect(cancelled.text).toContain('The job is already completed.')
    expect(cancelled.text).toContain('<h1>March</h1>')
    expect((await post('/lists/job_a/resume')).status).toBe(409)
  })

  test('is rejected without the CSRF token or the scope', async () => {
    const services = await dashboardWithList()
    for (const path of ['cancel', 'resume', 'delete']) {
      const { status } = await services.post(`/lists/job_a/${path}`, { _csrf: 'wrong' })
      expect([path, status]).toEqual([path, 403])
    }
    await services.as('jobs:read')
    expect((await services.page()).text).not.toContain('/lists/job_a/delete')
    expect((await services.post('/lists/job_a/delete')).status).toBe(403)
    expect(await services.state()).toBe('completed')
  })
})

describe('the download of a list', () => {
  const lines = (text: string) => text.trimEnd().split('\r\n').slice(1)

  test('has its rows, all or of some classes, under its own name', async () => {
    const { get } = await dashboardWithList()
    const all = await get('/lists/job_a/download')
    expect(all.headers.get('Content-Disposition')).toBe('attachment; filename="March-verified.csv"')
    expect(all.headers.get('Content-Type')).toContain('text/csv')
    expect(lines(all.text)).toHaveLength(6)
    const some = await get('/lists/job_a/download?format=csv&class=risky&class=unknown')
    expect(lines(some.text)).toHaveLength(4)
    const workbook = await get('/lists/job_a/download?format=xlsx')
    expect([workbook.status, workbook.text.slice(0, 2)]).toEqual([200, 'PK'])
    const json = await get('/lists/job_a/download?format=json&class=deliverable')
    expect(JSON.parse(json.text)).toMatchObject([{ email: 'valid@a.example' }])
    expect(json.headers.get('Content-Disposition')).toContain('"March-deliverable.json"')
  })

  test('has a button for the deliverable rows, or for all if none is', async () => {
    const { page } = await dashboardWithList()
    const { text } = await page()
    expect(plain(text)).toContain('Download deliverable (1)')
    expect(text).toContain('href="/lists/job_a/download?class=deliverable"')
    const none = await dashboardWithList({ texts: ['risky@a.example', 'invalid@a.example'] })
    expect(plain((await none.page()).text)).toContain('Download all (2)')
    // The button of a running list stays the same while its results arrive.
    const empty = await dashboardWithList({ done: 0 })
    expect(plain((await empty.page()).text)).toContain('Download deliverable More downloads')
    await cancelJob(empty.database, 'job_a')
    expect((await empty.page()).text).not.toContain('/lists/job_a/download')
  })

  test('has each address once if selected', async () => {
    const texts = ['valid@a.example', 'valid@A.example', 'risky@a.example']
    const { get } = await dashboardWithList({ texts })
    expect(lines((await get('/lists/job_a/download?deduplicate=on')).text)).toHaveLength(2)
    expect(lines((await get('/lists/job_a/download')).text)).toHaveLength(3)
  })

  test('has the results so far if it is not completed', async () => {
    const { get } = await dashboardWithList({ done: 2 })
    expect(lines((await get('/lists/job_a/download')).text)).toHaveLength(2)
  })

  test('returns an error for an unknown format', async () => {
    const { get } = await dashboardWithList()
    const { status, text } = await get('/lists/job_a/download?format=xml')
    expect([status, text.includes('role="alert"')]).toEqual([400, true])
  })
})

test('the progress of a list is streamed as the parts of its page', async () => {
  const { get } = await dashboardWithList()
  const { headers, text } = await get('/lists/job_a/events')
  expect(headers.get('Content-Type')).toContain('text/event-stream')
  expect(headers.get('X-Accel-Buffering')).toBe('no')
  const [, data = ''] = /^retry: 3000\n\nevent: end\ndata: (.*)\n\n$/.exec(text) ?? []
  const { percent, parts } = JSON.parse(data) as { percent: number; parts: string[] }
  expect(percent).toBe(100)
  expect(parts.map(part => / id="([^"]+)"/.exec(part)?.[1])).toEqual([
    ...['live-figures', 'live-meter', 'live-bar', 'live-waits', 'by-class'],
    ...['count-all', 'count-deliverable', 'count-risky', 'count-undeliverable', 'count-unknown'],
    'live-reasons',
  ])
  expect(plain(parts[0] ?? '')).toContain('100% Done of 6 6 Per second – Time left –')
  expect(plain(parts[4] ?? '')).toContain('Risky 2 33.3%')
})

test('each part of the progress replaces one of the page, with the same text', async () => {
  const { page, get, database } = await dashboardWithList({ done: 2 })
  const { text } = await page()
  await cancelJob(database, 'job_a')
  const [, data = ''] = /data: (.*)/.exec((await get('/lists/job_a/events')).text) ?? []
  for (const part of (JSON.parse(data) as { parts: string[] }).parts) {
    const id = / id="([^"]+)"/.exec(part)?.[1] ?? ''
    expect([id, text.split(` id="${id}"`).length]).toEqual([id, 2])
    if (id.startsWith('count-') || id === 'live-meter') expect(text).toContain(part)
  }
})

/** Adds a mail server reply and a suggestion to a result. */
async function says({ db }: TestDashboard['database'], text: string, suggestion = 'v@b.example') {
  const { result } = await db.selectFrom('item').select('result').executeTakeFirstOrThrow()
  const known = JSON.parse(result ?? '')
  const answer = {
    kind: 'accepted',
    why: 'recipient',
    stage: 'rcpt',
    reply: { code: 250, enhanced: null, text },
  }
  const route = { kind: 'mx', hosts: [{ preference: 10, host: 'mx.a.example' }] }
  const evidence = { ...known.evidence, answer, route, suggestion }
  await db
    .updateTable('item')
    .set({ result: JSON.stringify({ ...known, evidence }) })
    .where('state', '=', 'done')
    .execute()
}
