import { describe, expect, test } from 'vitest'
import { MINUTE } from '../../../src/platform/clock.ts'
import { mail } from '../../support/engine.ts'
import { MIXED } from '../../support/job-rows.ts'
import { failStoring } from '../../support/list-service.ts'
import { toRecipients } from '../../support/recipients.ts'
import {
  createHalfwayListDashboard,
  createListsDashboard,
  createQueuedListDashboard,
  createSimulatedListDashboard,
  EVIL,
  EVIL_SHOWN,
} from './room.ts'

/** A dashboard with a list of one address, whose mail server accepts it with this text. */
async function createListWithReply(text: string, email = 'ann@gmial.com') {
  const [domain = ''] = email.split('@').slice(-1)
  const script = toRecipients(to => (to === email ? `250 ${text}` : '550 5.1.1 No such user'))
  const services = await createListsDashboard({
    works: true,
    engine: { script, zone: mail(domain, '192.0.2.7') },
  })
  const id = await services.submit([email], { name: 'March' })
  await services.finished(id)
  const path = `/lists/${id}`
  return { ...services, id, path, page: (query = '') => services.get(`${path}${query}`) }
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
  test('that is queued waits for a worker', async () => {
    const { page, path } = await createQueuedListDashboard()
    const { text } = await page()
    expect(plain(text)).toContain('The list starts when a worker is free.')
    expect(text).toContain(`data-events="${path}/events"`)
    expect(plain(text)).toContain('By reason No results yet.')
  })

  test('that is active shows its progress and its reasons, and can be cancelled', async () => {
    const { page, path } = await createHalfwayListDashboard()
    const { text } = await page()
    expect(plain(text)).toContain('Processing as fast as the mail servers allow.')
    expect(plain(text)).toContain('33% Done of 6 2 Per second –')
    expect(text).toContain('<progress class="unseen" id="live-meter" max="6" value="2"')
    expect(text).toContain('<b>1</b> <small>50.0%<')
    expect(linkOf(text, 'Risky')).toBe(`${path}?class=risky`)
    expect(text).toContain('Pending')
    expect(text).toContain(`${path}/cancel`)
    expect(text).not.toContain(`${path}/resume`)
    expect(plain(text)).toContain('Rows by reason Accepted 1 50.0%')
  })

  test('that is active counts its reasons again for the stream', async () => {
    const { page, get, path, post, clock, release, settled } = await createHalfwayListDashboard()
    await page()
    release()
    await settled(clock.advance(MINUTE))
    await post(`${path}/cancel`)
    const [, data = ''] = /data: (.*)/.exec((await get(`${path}/events`)).text) ?? []
    const reasons = (JSON.parse(data) as { parts: string[] }).parts.at(-1) ?? ''
    expect(reasons).toContain('<div id="live-reasons">')
    expect(plain(reasons)).toMatch(/^ *Rows by reason Accepted 5 83\.3%/)
  })

  test('that is active and long shows its reasons with the first event', async () => {
    const { page, database } = await createQueuedListDashboard(MIXED)
    await database.db.updateTable('job').set({ total: 20_001 }).execute()
    const { text } = await page()
    expect(text).toContain('<div id="live-reasons">')
  })

  test('creates a link to its results, which needs no key', async () => {
    const { path, id, post, json } = await createSimulatedListDashboard()
    const created = await post(`${path}/link`, { link_format: 'csv', deliverable: 'on' })
    expect(created.status).toBe(200)
    const text = created.text.replaceAll('&amp;', '&')
    expect(text).toContain(`/v1/jobs/${id}/download?format=csv&filter=deliverable&key_id=`)
    expect(text).toMatch(/&key_id=[^"<\s]+&signature=[0-9a-f]{64}/)
    expect(await json('/v1/audit?action=results.shared')).toMatchObject({
      data: { items: [{ actor: 'session' }] },
    })
    expect((await post(`${path}/link`, { link_format: 'pdf' })).status).toBe(400)
  })

  test('shows the metadata of the list', async () => {
    const { page } = await createQueuedListDashboard(MIXED, { metadata: { customer: EVIL } })
    expect((await page()).text).toContain(`Metadata: <code>customer</code> ${EVIL_SHOWN}.`)
  })

  test('that is completed shows its results by class, reason and provider', async () => {
    const { page } = await createSimulatedListDashboard()
    const { text } = await page()
    expect(plain(text)).toContain('Verified 6 rows in ')
    expect(plain(text)).toContain('By class 6 Deliverable 1 16.7% Risky 2 33.3%')
    expect(plain(text)).toMatch(
      /Expected bounces Mail to all addresses \d+\.\d% \(.*\) If you follow the actions \d/,
    )
    expect(plain(text)).toContain('Timeout 1 16.7%')
    expect(plain(text)).toContain('Timeout The mail server did not answer in time. What to do:')
    expect(plain(text)).toContain('Rows by provider No mail server probed 6 100%')
    expect(text).not.toContain('data-events')
    expect(text).not.toMatch(/\/(cancel|resume)"/)
  })

  test('that was cancelled or failed explains what happened and can be resumed', async () => {
    const { page, path, id, post, release, finished, service } = await createHalfwayListDashboard()
    await post(`${path}/cancel`)
    const cancelled = (await page()).text
    expect(plain(cancelled)).toContain('Stopped after 2 of 6 rows. The results so far')
    expect(cancelled).toContain(`${path}/resume`)
    const mend = failStoring({ service })
    await post(`${path}/resume`)
    release()
    await finished(id)
    mend()
    const failed = plain((await page()).text)
    expect(failed).toContain('Internal error after 2 of 6')
    expect(failed).toContain('(server_error)')
    expect(failed).toContain(`send the list ID ${id}`)
  })

  test('of a long list loads its charts later; without JavaScript they are a page', async () => {
    const { path, page, get, database } = await createSimulatedListDashboard()
    await database.db.updateTable('job').set({ total: 20_001 }).execute()
    expect((await page()).text).toContain(`hx-get="${path}/charts" hx-trigger="load"`)
    const whole = (await get(`${path}/charts`)).text
    expect(whole).toContain('<h1>March</h1>')
    const part = (await get(`${path}/charts`, { 'HX-Request': 'true' })).text
    expect(plain(part)).toContain('By class 6 Deliverable 1 16.7%')
    expect(part).not.toContain('<h1>')
  })

  test('returns 404 for another account, with all its parts', async () => {
    const services = await createSimulatedListDashboard()
    await services.asAnother()
    for (const path of ['', '/charts', '/events', '/download']) {
      const { status, text } = await services.get(`${services.path}${path}`)
      expect([path, status, text.includes('a.example')]).toEqual([path, 404, false])
    }
    for (const path of ['cancel', 'finish', 'resume', 'delete']) {
      expect([path, (await services.post(`${services.path}/${path}`)).status]).toEqual([path, 404])
    }
    expect(await services.state(services.id)).toBe('completed')
  })
})

describe('the rows of a list', () => {
  test('have class, reason and mail server reply', async () => {
    const { page } = await createListWithReply('2.1.5 Ok')
    expect(plain((await page()).text)).toContain(
      '1 ann@gmial.com Did you mean ann@gmail.com? Risky Possible typo gmial.com 250 Ok',
    )
  })

  test('render markup in addresses, replies and names as text', async () => {
    const email = `"${EVIL}"@a.test`
    const services = await createListWithReply(EVIL, email)
    const renamed = `/lists/${await services.submit([email], { name: EVIL })}`
    await services.finished(renamed.slice('/lists/'.length))
    const { path, get } = services
    const headers = { 'HX-Request': 'true', 'HX-Target': 'rows' }
    for (const { text } of [await get(path), await get(path, headers), await get(renamed)]) {
      expect(text.split(EVIL_SHOWN).length).toBeGreaterThan(2)
      expect(text).not.toContain('<img')
    }
  })

  test('are filtered by class, reason and part of the address', async () => {
    const { page } = await createSimulatedListDashboard()
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
    const { path, page, get } = await createSimulatedListDashboard(texts)
    const first = (await page('?class=risky&search=A.EXAMPLE')).text
    expect(first).toContain('value="A.EXAMPLE"')
    expect(first).toContain('<input type="hidden" name="class" value="risky" />')
    expect(first).toMatch(/id="chip-risky"[^>]* aria-current="true"/)
    expect(numbersOf(first)).toHaveLength(25)
    const next = linkOf(first, 'Next page') ?? ''
    const second = (await get(next)).text
    expect(numbersOf(second)).toEqual(['52', '54', '56', '58', '60', '62', '64', '66', '68', '70'])
    expect(second).not.toContain('Next page')
    expect(linkOf(second, 'First page')).toBe(`${path}?search=A.EXAMPLE&class=risky`)
    expect(second).toContain('<input type="hidden" name="class" value="risky" />')
  })

  test('start at any requested row', async () => {
    const { page } = await createSimulatedListDashboard()
    expect(numbersOf((await page('?row=5')).text)).toEqual(['5', '6'])
    expect((await page('?row=1,000')).text).toContain('No rows at or after row 1,000.')
    for (const row of ['x', '0', '1.5']) {
      const { status, text } = await page(`?row=${row}`)
      expect([row, status, text.includes('role="alert"')]).toEqual([row, 200, true])
      expect(text).toContain(`name="row" value="${row}"`)
    }
  })

  test('are searched in the whole of a long list, and counted', async () => {
    const { page, database } = await createSimulatedListDashboard(['valid@a.example'])
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
    const { page, get } = await createSimulatedListDashboard(texts)
    const first = (await page()).text
    expect(plain(first)).toContain('1–25 of 2,636')
    const second = (await get(linkOf(first, 'Next page') ?? '')).text
    expect(plain(second)).toContain('26–50 of 2,636')
    expect(plain((await page('?row=2,630')).text)).toContain('2,630–2,636 of 2,636')
    expect(plain((await page('?class=risky')).text)).toContain('1–25 of 1,318')
  })

  test('are sorted by links in the heading, which reverse the order and keep the filter', async () => {
    const { path, page, get } = await createSimulatedListDashboard()
    const { text } = await page('?class=risky&class=unknown&row=2')
    expect(text).toMatch(/<th scope="col" class="number" aria-sort="ascending"><a id="sort-row"/)
    expect(text.split('aria-sort=')).toHaveLength(2)
    const up = linkOf(text, 'Address') ?? ''
    expect(up).toBe(`${path}?sort=email&class=risky&class=unknown`)
    const ascending = (await get(up)).text
    expect(numbersOf(ascending)).toEqual(['5', '2', '6', '4'])
    expect(ascending).toMatch(/<th scope="col" aria-sort="ascending"><a id="sort-email"/)
    // A row number is a position in the list, not in another order.
    expect(ascending).not.toContain('From row')
    const down = linkOf(ascending, 'Address') ?? ''
    expect(down).toBe(`${path}?sort=email&order=desc&class=risky&class=unknown`)
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
    const { path, page, get } = await createSimulatedListDashboard(texts)
    const first = (await page('?sort=email&order=desc')).text
    expect(numbersOf(first).slice(0, 2)).toEqual(['60', '59'])
    const second = (await get(linkOf(first, 'Next page') ?? '')).text
    expect(numbersOf(second)[0]).toBe('35')
    expect(plain(second)).toContain('26–50 of 60')
    expect(second).toContain(
      `id="chip-risky" href="${path}?sort=email&amp;order=desc&amp;class=risky#rows"`,
    )
    expect(second).toContain('<input type="hidden" name="order" value="desc" />')
  })

  test('show the reply and the suggestion in full', async () => {
    const reply = `5.1.1 <carl.grun0@severn-rooms.test>: ${'Recipient address rejected. '.repeat(6)}End`
    const { page } = await createListWithReply(reply)
    const { text } = await page()
    expect(plain(text)).toContain('250 5.1.1 &lt;carl.grun0@severn-rooms.test&gt;: Recipient')
    expect(plain(text)).toContain('Recipient address rejected. End')
    expect(plain(text)).toContain('Did you mean ann@gmail.com?')
    expect(text).not.toContain('<details class="cut"')
  })

  test('have no characters that control the text around them', async () => {
    const { page } = await createSimulatedListDashboard(['a\u202eb\u0007c@a.example'])
    for (const query of ['', '?open=1']) {
      const shown = (await page(query)).text
      expect(plain(shown)).toContain('a\ufffdb\ufffdc@a.example')
      expect(shown).not.toMatch(/[\u202e\u0007]/)
    }
  })

  test('show an error for an invalid row number', async () => {
    const { page } = await createSimulatedListDashboard()
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
    const { path, get } = await createSimulatedListDashboard()
    const search = (current: string) =>
      get(`${path}?search=valid&reason=&sort=row`, {
        'HX-Request': 'true',
        'HX-Target': 'found',
        'HX-Current-URL': `https://ev.test${path}${current}`,
      })
    const first = await search('?class=risky')
    expect(numbersOf(first.text)).toEqual(['1', '3'])
    expect(first.text).not.toContain('name="search" type="search"')
    expect(first.headers.get('HX-Push-Url')).toBe(`${path}?search=valid`)
    const second = await search('?search=val')
    expect(second.headers.get('HX-Push-Url')).toBeNull()
    expect(second.headers.get('HX-Replace-Url')).toBe(`${path}?search=valid`)
  })

  test('are rendered alone for htmx', async () => {
    const { path, get } = await createSimulatedListDashboard()
    const headers = { 'HX-Request': 'true', 'HX-Target': 'rows' }
    const { text } = await get(`${path}?class=risky`, headers)
    expect(numbersOf(text)).toEqual(['2', '6'])
    expect(text).not.toContain('<html')
    expect(text).toContain('id="rows-said" hx-swap-oob="innerHTML"')
  })
})

describe('the details of a row', () => {
  const PANEL = /<dialog id="panel".*<\/dialog>/s
  const panelOf = (text: string) => plain(PANEL.exec(text)?.[0] ?? '')

  test('are opened by a link in its row, in the page or alone, and closed by one', async () => {
    const { page, path, get } = await createListWithReply('2.1.5 Ok')
    const { text } = await page('?class=risky')
    expect(text).toContain('<dialog id="panel" class="panel" aria-label="Row"></dialog>')
    const href = linkOf(text, 'ann@<wbr>gmial.com')?.replace('#panel', '') ?? ''
    expect(href).toBe(`${path}?open=1&class=risky`)
    const headers = { 'HX-Request': 'true', 'HX-Target': 'panel' }
    const part = await get(href, headers)
    expect(part.text).not.toContain('<html')
    expect(part.headers.get('HX-Push-Url')).toBe(href)
    for (const one of [part.text, (await get(href)).text]) {
      expect(panelOf(one)).toContain('Row 1 ann@gmial.com Close Risky Re-verify')
      expect(panelOf(one)).toContain('Did you mean ann@gmail.com ?')
      expect(panelOf(one)).toContain('Reply: 250 2.1.5 Ok')
      expect(panelOf(one)).toContain('MX 10 mx.gmial.com')
      expect(panelOf(one)).toContain('SMTP dialogue Lists store only the final reply.')
      expect(one).toContain('aria-labelledby="panel-title" open')
      expect(one).toContain(`href="${path}?class=risky#rows" data-close`)
    }
  })

  test('say so if there is no result, or no such row', async () => {
    const { page, database } = await createHalfwayListDashboard()
    expect(panelOf((await page('?open=3')).text)).toContain('This row has no result yet.')
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

  test('render markup in addresses and replies as text', async () => {
    const { page } = await createListWithReply(EVIL, `"${EVIL}"@a.test`)
    const { text } = await page('?open=1')
    expect(PANEL.exec(text)?.[0].split(EVIL_SHOWN).length).toBeGreaterThan(2)
    expect(text).not.toContain('<img')
  })

  test('verify the address or the suggestion, and the list keeps its result', async () => {
    const emails = ['valid@a.example', 'risky@a.example', 'invalid7@gmial.com']
    const { post, path, get } = await createSimulatedListDashboard(emails)
    const row = `${path}/rows/3/verify`
    const part = await post(row, { subject: 'address' }, { 'HX-Request': 'true' })
    expect(plain(part.text)).toMatch(/^ *New result for invalid7@gmial.com Undeliverable/)
    const whole = await post(row, { subject: 'suggestion' })
    expect(panelOf(whole.text)).toContain('New result for invalid7@gmail.com Undeliverable')
    expect(panelOf((await get(`${path}?open=3`)).text)).not.toContain('New result')
    const { text } = await get(path)
    expect(numbersOf(text)).toHaveLength(3)
  })

  test('verify no row of another account or without the scope', async () => {
    const services = await createSimulatedListDashboard()
    await services.as('jobs:read')
    expect((await services.page('?open=1')).text).not.toContain('/rows/1/verify')
    const path = `${services.path}/rows/1/verify`
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
    const { page } = await createSimulatedListDashboard()
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
    const { path, page } = await createSimulatedListDashboard()
    const { text } = await page()
    expect(linkOf(text, 'Unknown')).toBe(`${path}?class=unknown`)
    expect(linkOf(text, 'Timeout')).toBe(`${path}?reason=timeout`)
    const timeout = (await page('?reason=timeout')).text
    expect(timeout).toMatch(/id="chip-reason" href="[^"?]*#rows"[^>]* aria-current="true"/)
    expect(numbersOf(timeout)).toEqual(['4'])
  })

  test('of an action is set by the expected bounces, and shows that action', async () => {
    const { path, page } = await createSimulatedListDashboard()
    expect(linkOf((await page()).text, 'Send')).toBe(`${path}?action=send`)
    const { text } = await page('?action=suppress')
    expect(text).toMatch(/id="chip-action" href="[^"?]*#rows"[^>]* aria-current="true"/)
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
  const { page, database } = await createSimulatedListDashboard(texts)
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
  test('is shown with the time of the next attempt', async () => {
    const services = await createListsDashboard({
      works: true,
      engine: { script: toRecipients(() => '450 4.2.0 Greylisted, try again in 60 seconds') },
    })
    const { submit, get, clock } = services
    const id = await submit(['ann@a.test', 'bob@a.test'])
    await clock.advance(1_000)
    const { text } = await get(`/lists/${id}`)
    expect(plain(text)).toMatch(
      /2 addresses at a\.test: the mail server deferred them\. Next attempt at 2026-06-01 12:0\d UTC \./,
    )
    expect(text).toContain('<time datetime="2026-06-01T12:0')
    expect(plain(text)).toMatch(/Time left \d minutes?/)
  })
})

describe('an action on a list', () => {
  test('finishes it, and offers that once', async () => {
    const { post, path, page, get } = await createHalfwayListDashboard()
    expect((await page()).text).toContain(`action="${path}/finish"`)
    expect((await post(`${path}/finish`)).headers.get('Location')).toBe(path)
    const finishing = (await get(path)).text
    expect(finishing).toContain('Finishing the list. Rows in flight end normally.')
    expect(finishing).not.toContain(`action="${path}/finish"`)
  })

  test('cancels, resumes and deletes it', async () => {
    const { post, path, id, get, state } = await createHalfwayListDashboard()
    expect((await post(`${path}/cancel`)).headers.get('Location')).toBe(path)
    expect(await state(id)).toBe('cancelled')
    expect((await get(path)).text).toContain('List cancelled.')
    expect((await post(`${path}/resume`)).headers.get('Location')).toBe(path)
    expect(await state(id)).toBe('processing')
    expect((await post(`${path}/delete`)).headers.get('Location')).toBe('/lists')
    expect(await state(id)).toBeUndefined()
    expect((await get('/lists')).text).toContain('List deleted')
  })

  test('resumes it once after a double click', async () => {
    const { post, path, page } = await createHalfwayListDashboard()
    await post(`${path}/cancel`)
    const [, once = ''] = /name="_once" value="([^"]+)"/.exec((await page()).text) ?? []
    const first = await post(`${path}/resume`, { _once: once })
    const second = await post(`${path}/resume`, { _once: once })
    expect([first.status, second.status]).toEqual([303, 303])
  })

  test('that its state does not allow shows an error', async () => {
    const { path, post } = await createSimulatedListDashboard()
    const cancelled = await post(`${path}/cancel`)
    expect(cancelled.status).toBe(409)
    expect(cancelled.text).toContain('The job is already completed.')
    expect(cancelled.text).toContain('<h1>March</h1>')
    expect((await post(`${path}/resume`)).status).toBe(409)
  })

  test('is rejected without the CSRF token or the scope', async () => {
    const services = await createSimulatedListDashboard()
    for (const path of ['cancel', 'resume', 'delete']) {
      const { status } = await services.post(`${services.path}/${path}`, { _csrf: 'wrong' })
      expect([path, status]).toEqual([path, 403])
    }
    await services.as('jobs:read')
    expect((await services.page()).text).not.toContain(`${services.path}/delete`)
    expect((await services.post(`${services.path}/delete`)).status).toBe(403)
    expect(await services.state(services.id)).toBe('completed')
  })
})

describe('the download of a list', () => {
  const lines = (text: string) => text.trimEnd().split('\r\n').slice(1)

  test('has its rows, all or of some classes, under its own name', async () => {
    const { path, get } = await createSimulatedListDashboard()
    const all = await get(`${path}/download`)
    expect(all.headers.get('Content-Disposition')).toBe('attachment; filename="March-verified.csv"')
    expect(all.headers.get('Content-Type')).toContain('text/csv')
    expect(lines(all.text)).toHaveLength(6)
    const some = await get(`${path}/download?format=csv&class=risky&class=unknown`)
    expect(lines(some.text)).toHaveLength(4)
    const workbook = await get(`${path}/download?format=xlsx`)
    expect([workbook.status, workbook.text.slice(0, 2)]).toEqual([200, 'PK'])
    const json = await get(`${path}/download?format=json&class=deliverable`)
    expect(JSON.parse(json.text)).toMatchObject([{ email: 'valid@a.example' }])
    expect(json.headers.get('Content-Disposition')).toContain('"March-deliverable.json"')
  })

  test('has a button for the deliverable rows, or for all if none is', async () => {
    const { path, page } = await createSimulatedListDashboard()
    const { text } = await page()
    expect(plain(text)).toContain('Download deliverable (1)')
    expect(text).toContain(`href="${path}/download?class=deliverable"`)
    const none = await createSimulatedListDashboard(['risky@a.example', 'invalid@a.example'])
    expect(plain((await none.page()).text)).toContain('Download all (2)')
    // The button of a running list stays the same while its results arrive.
    const empty = await createQueuedListDashboard()
    expect(plain((await empty.page()).text)).toContain('Download deliverable More downloads')
    await empty.post(`${empty.path}/cancel`)
    expect((await empty.page()).text).not.toContain(`${empty.path}/download`)
  })

  test('has each address once if selected', async () => {
    const texts = ['valid@a.example', 'valid@A.example', 'risky@a.example']
    const { path, get } = await createSimulatedListDashboard(texts)
    expect(lines((await get(`${path}/download?deduplicate=on`)).text)).toHaveLength(2)
    expect(lines((await get(`${path}/download`)).text)).toHaveLength(3)
  })

  test('has the results so far if it is not completed', async () => {
    const { path, get } = await createHalfwayListDashboard()
    expect(lines((await get(`${path}/download`)).text)).toHaveLength(2)
  })

  test('returns an error for an unknown format', async () => {
    const { path, get } = await createSimulatedListDashboard()
    const { status, text } = await get(`${path}/download?format=xml`)
    expect([status, text.includes('role="alert"')]).toEqual([400, true])
  })
})

test('the progress of a list is streamed as the parts of its page', async () => {
  const { path, get } = await createSimulatedListDashboard()
  const { headers, text } = await get(`${path}/events`)
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
  const { page, path, get, post } = await createHalfwayListDashboard()
  const { text } = await page()
  await post(`${path}/cancel`)
  const [, data = ''] = /data: (.*)/.exec((await get(`${path}/events`)).text) ?? []
  for (const part of (JSON.parse(data) as { parts: string[] }).parts) {
    const id = / id="([^"]+)"/.exec(part)?.[1] ?? ''
    expect([id, text.split(` id="${id}"`).length]).toEqual([id, 2])
    if (id.startsWith('count-') || id === 'live-meter') expect(text).toContain(part)
  }
})
