import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { EvClient } from '../../../src/client/client.ts'
import { stage, type Visitor } from './browser.ts'
import { EVIL, EVIL_EXAMPLE } from './evil-example.ts'

const set = stage({ scenario: EVIL_EXAMPLE })

/** Drops a file on the page. */
async function drop(page: Page, name: string, text: string): Promise<void> {
  const files = await page.evaluateHandle(`(() => {
    const files = new DataTransfer()
    files.items.add(new File([${JSON.stringify(text)}], ${JSON.stringify(name)}))
    return files
  })()`)
  await page.dispatchEvent('h1', 'dragover', { dataTransfer: files })
  await page.dispatchEvent('h1', 'drop', { dataTransfer: files })
}

/** Pastes rows, which previews them. */
async function paste(visitor: Visitor, rows: string): Promise<void> {
  await visitor.go('/lists/new')
  await visitor.page.getByLabel('Or paste rows').fill(rows)
  await visitor.page.getByRole('button', { name: 'Start' }).waitFor()
}

const start = async (page: Page) => {
  await page.getByRole('button', { name: 'Start' }).click()
  await page.waitForURL(/\/lists\/job_/)
}

const figure = (page: Page, name: string) =>
  page.locator('dl > div', { has: page.locator('dt', { hasText: name }) }).locator('dd')

const rowsShown = (page: Page) => page.locator('#rows tbody tr')

const pendingRows = (page: Page) => rowsShown(page).filter({ hasText: 'Pending' })

/** Returns each height of a row; the last one has no border. */
const rowHeights = (page: Page) =>
  page.evaluate<number[]>(
    '[...new Set([...document.querySelectorAll("#rows tbody tr:not(:last-child)")].map(one => one.offsetHeight))]',
  )

/** Returns the cells whose content is cut or does not fit. */
const cutCells = (page: Page) =>
  page.evaluate<string[]>(`
    [...document.querySelectorAll('#rows tbody :is(th, td, a, span, small)')]
      .filter(one => one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0 ||
        getComputedStyle(one).textOverflow === 'ellipsis')
      .map(one => one.outerHTML)`)

test('10,000 rows are uploaded, processed, searched, filtered and downloaded', async () => {
  const visitor = await set.open()
  const { page } = visitor
  const kinds = ['valid', 'invalid', 'risky', 'timeout']
  const list = Array.from({ length: 10_000 }, (_, n) => `User ${n},${kinds[n % 4]}${n}@a.example\n`)
  await visitor.go('/lists')
  await visitor.check('lists-empty')
  await page.getByRole('link', { name: 'New list' }).first().click()
  await page.getByLabel('Sandbox').check()
  await visitor.check('list-new')
  await drop(page, 'Autumn.csv', `Name,Email\n${list.join('')}`)
  await figure(page, 'Rows').getByText('10,000').waitFor()
  await page.getByLabel('First row').selectOption('Data')
  await figure(page, 'Rows').getByText('10,001').waitFor()
  await page.getByLabel('First row').selectOption('Header')
  await figure(page, 'Rows').getByText('10,000').waitFor()
  await visitor.check('draft')
  await start(page)
  // The progress updates in place until the results replace it.
  await page.getByText('Verified 10,000 rows').waitFor()
  expect(await page.locator('#live').count()).toBe(0)
  await rowsShown(page).first().getByText('deliverable').waitFor()
  await visitor.check('list')

  await page.getByRole('link', { name: /^Risky \d/ }).click()
  await expect.poll(() => rowsShown(page).first().textContent()).toContain('risky2@')
  expect(page.url()).toContain('class=risky')
  await page.getByLabel('Search addresses').fill('RISKY999')
  await page.keyboard.press('Enter')
  await expect.poll(() => rowsShown(page).count()).toBe(3)
  expect(await rowsShown(page).first().textContent()).toContain('risky9990@')
  await page.goBack()
  await expect.poll(() => rowsShown(page).count()).toBe(25)
  await page.getByLabel('From row').fill('9000')
  await page.keyboard.press('Enter')
  await expect.poll(() => rowsShown(page).first().textContent()).toContain('9,003')
  await page.getByRole('link', { name: 'Next page' }).press('Enter')
  await expect.poll(() => rowsShown(page).first().textContent()).toContain('9,103')
  expect(await page.evaluate('document.activeElement.id')).toBe('page-next')

  // A slice of the donut and a bar filter as the chips do.
  await page.locator('.donut circle.fill-unknown').dispatchEvent('click')
  await expect.poll(() => page.url()).toContain('class=unknown')
  await page.getByRole('link', { name: 'Timeout', exact: true }).first().click()
  await expect.poll(() => page.url()).toMatch(/\?reason=timeout$/)

  await page.getByText('More downloads').click()
  for (const name of ['Deliverable', 'Risky', 'Unknown']) {
    await page.getByRole('checkbox', { name, exact: true }).uncheck()
  }
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Download', exact: true }).click(),
  ])
  const text = readFileSync(await download.path(), 'utf8')
    .trimEnd()
    .split('\n')
  expect(download.suggestedFilename()).toBe('Autumn-undeliverable.csv')
  expect([text.length, text[0]?.startsWith('Name,Email,ev_')]).toEqual([2_501, true])
  expect(text.slice(1).every(line => line.includes('invalid'))).toBe(true)
  expect(visitor.faults).toEqual([])
})

test('an active list is watched, cancelled, resumed and deleted', async () => {
  const visitor = await set.open()
  const { page } = visitor
  await page.clock.install()
  // Its server delays each reply, and the list is long enough not to end before it is cancelled.
  const slow = Array.from({ length: 600 }, (_, n) => `user${n}@slow.test\n`).join('')
  await paste(visitor, slow)
  await visitor.check('draft-pasted')
  await page.getByRole('button', { name: 'Start' }).dblclick()
  await page.waitForURL(/\/lists\/job_/)
  await expect.poll(() => page.locator('#live-figures dd').first().textContent()).not.toBe('0')
  await page.evaluate(`
    window.shifts = 0
    new PerformanceObserver(list => {
      for (const { value } of list.getEntries()) window.shifts += value
    }).observe({ type: 'layout-shift' })`)
  const done = () => page.locator('#live-figures dd').first().textContent()
  const before = await done()
  const pending = await pendingRows(page).count()
  await expect.poll(done).not.toBe(before)
  // Results replace the pending rows of the page.
  await expect.poll(() => pendingRows(page).count()).toBeLessThan(pending)
  // The donut grows with the progress, and nothing moves.
  expect(await page.locator('.donut text').textContent()).not.toBe(before)
  // The reasons come with the progress.
  await page.locator('#live-reasons').getByRole('row', { name: 'Accepted' }).waitFor()
  expect(await page.evaluate('window.shifts')).toBe(0)
  expect(await rowHeights(page)).toHaveLength(1)
  await visitor.check('list-live')
  expect(await figure(page, 'Per second').textContent()).toMatch(/^[\d.,–]+$/)
  await page.getByRole('button', { name: 'Cancel' }).click()
  await page.getByText('Stopped after').waitFor()
  await visitor.check('list-cancelled')
  await page.getByRole('button', { name: 'Resume' }).click()
  await page.locator('#live').waitFor()
  await visitor.go('/lists')
  const listed = page.locator('#lists tr').filter({ hasText: 'Pasted rows' })
  expect(await listed.count()).toBe(1)
  await visitor.check('lists')
  await page.getByRole('link', { name: 'Pasted rows' }).click()
  await page.getByText('Delete', { exact: true }).click()
  await page.getByRole('button', { name: 'Delete list' }).click()
  await page.getByText('List deleted').waitFor()
  expect(await listed.count()).toBe(0)
})

/** The height of the table of rows, with its heading. */
const tableHeight = (page: Page) =>
  page.evaluate<number>('document.querySelector("#rows .scroll").offsetHeight')

/** Rows of a sandbox list that are like those of a real one: a suggestion, a syntax error, refusals. */
const ORDINARY = Array.from({ length: 30 }, (_, n) =>
  n % 5 === 0
    ? `typo-carl.lefevre${n}@gmial.com`
    : `${['valid', 'invalid', 'mailbox-full', 'catchall'][n % 4]}-maria.oliveira${n}@northwind-tea.example`,
)

test('a row opens a panel that the keyboard reaches, closes and links to', async () => {
  const visitor = await set.open()
  const { page } = visitor
  await visitor.go('/lists/new')
  await page.getByLabel('Sandbox').check()
  await page.getByLabel('Or paste rows').fill(ORDINARY.join('\n'))
  await start(page)
  await page.getByText('Verified 30 rows').waitFor()
  const panel = page.getByRole('dialog')
  const focused = () => page.evaluate<string>('document.activeElement.id')

  await page.locator('#open-2').focus()
  await page.keyboard.press('Enter')
  await panel.getByRole('heading', { name: 'maria.oliveira1@' }).waitFor()
  expect(await focused()).toBe('panel-title')
  const link = page.url()
  expect(link).toMatch(/\?open=2$/)
  await visitor.check('list-row')
  // The rest of the page is out of reach while the dialog is open.
  for (let presses = 0; presses < 8; presses++) {
    await page.keyboard.press('Tab')
    const where = await page.evaluate<string>(
      'document.activeElement === document.body ? "body" : document.activeElement.closest("#panel")?.id ?? "page"',
    )
    expect(['body', 'panel']).toContain(where)
  }
  await page.keyboard.press('Escape')
  await expect.poll(focused).toBe('open-2')
  expect([await panel.count(), page.url()]).toEqual([0, link.replace('?open=2', '')])

  // A click anywhere on a row opens it, and the link opens it in a new page.
  await page.locator('#row-3 td').nth(3).click()
  await panel.getByRole('heading', { name: 'maria.oliveira2@' }).waitFor()
  await panel.getByRole('button', { name: 'Re-verify' }).click()
  await panel.getByRole('heading', { name: 'New result' }).waitFor()
  await visitor.check('list-row-verified')
  await panel.getByRole('link', { name: 'Close' }).click()
  expect(await panel.count()).toBe(0)
  await visitor.go(link)
  await panel.getByRole('heading', { name: 'maria.oliveira1@' }).waitFor()
  expect(await focused()).toBe('panel-title')
  await page.goBack()
  await expect.poll(() => panel.count()).toBe(0)
  expect(visitor.faults).toEqual([])
})

test('rows are searched as a text is typed, sorted by the headings, and short on a phone', async () => {
  const visitor = await set.open({ width: 390 })
  const { page } = visitor
  await visitor.go('/lists/new')
  await page.getByLabel('Sandbox').check()
  await page.getByLabel('Or paste rows').fill(ORDINARY.join('\n'))
  await start(page)
  await page.getByText('Verified 30 rows').waitFor()
  expect(await rowsShown(page).count()).toBe(25)
  expect(await tableHeight(page)).toBeLessThanOrEqual(2_200)
  await page.getByText('1–25 of 30').waitFor()
  // Two lines: the address with the class, and the reason with the reply.
  const heights = await rowHeights(page)
  expect(Math.min(...heights)).toBeLessThanOrEqual(64)

  const search = page.getByLabel('Search addresses')
  const requests: string[] = []
  page.on(
    'request',
    request => void (request.headers()['hx-target'] && requests.push(request.url())),
  )
  await search.pressSequentially('OLIVEIRA1', { delay: 30 })
  await page.getByText(/^1–9 of 9$/).waitFor()
  expect(requests).toHaveLength(1)
  expect(await page.evaluate('document.activeElement.id')).toBe('search')
  expect(page.url()).toMatch(/\?search=OLIVEIRA1$/)
  await page.getByLabel('Reason').selectOption('Mailbox full')
  await expect.poll(() => page.url()).toMatch(/\?search=OLIVEIRA1&reason=mailbox_full$/)
  await page.reload()
  expect(await search.inputValue()).toBe('OLIVEIRA1')
  const few = await rowsShown(page).count()
  await search.fill('')
  await expect.poll(() => rowsShown(page).count()).toBeGreaterThan(few)
  await page.getByLabel('Reason').selectOption('All reasons')
  await page.getByLabel('Sort by').selectOption('Sort by address')
  await expect.poll(() => page.url()).toMatch(/\?sort=email$/)
  await expect
    .poll(() => rowsShown(page).first().textContent())
    .toContain('catchall-maria.oliveira11@')

  await page.setViewportSize({ width: 1_280, height: 900 })
  await page.getByRole('link', { name: 'Address' }).click()
  await page.locator('th[aria-sort="descending"]', { hasText: 'Address' }).waitFor()
  expect(await page.evaluate('document.activeElement.id')).toBe('sort-email')
  expect(await rowsShown(page).first().textContent()).toContain('valid-maria.oliveira8@')
  await visitor.check('list-sorted')
  expect(visitor.faults).toEqual([])
})

test('markup in files, addresses and replies is rendered as text, by scripts too', async () => {
  const visitor = await set.open()
  const { page } = visitor
  await visitor.go('/lists/new')
  const evil = `${EVIL},bob@evil.test\n${EVIL},"${EVIL}"@evil.test\n`
  // This server delays each reply, so that the list is active for a while.
  const slow = Array.from({ length: 40 }, (_, n) => `x,user9${n}@slow.test\n`).join('')
  await drop(page, `${EVIL}.csv`, `${EVIL},Email\n${evil}${slow}`)
  await page.getByRole('columnheader', { name: EVIL }).waitFor()
  await start(page)
  // A long reply is shown in full while the list runs, and no cell cuts it.
  await page.locator('#rows').getByText(`550 ${EVIL}`).first().waitFor()
  for (const width of [360, 1_200]) {
    await page.setViewportSize({ width, height: 900 })
    expect(await cutCells(page), `${width} px`).toEqual([])
  }
  expect(await pendingRows(page).count()).toBeGreaterThan(0)
  await page.getByText('Verified 42 rows').waitFor()
  expect(await page.locator('#live').count()).toBe(0)
  expect(await rowsShown(page).getByText('Pending').count()).toBe(0)
  await page.locator('#rows').getByText(`550 ${EVIL}`).first().waitFor()
  await visitor.check('list-evil')
  await visitor.go('/lists')
  await page.getByRole('link', { name: `${EVIL}.csv` }).waitFor()
  expect(await page.locator('main img').count()).toBe(0)
  expect(visitor.faults).toEqual([])
})

test('a list is re-verified, once and at intervals', async () => {
  const visitor = await set.open()
  const { page } = visitor
  await visitor.go('/lists/new')
  await page.getByLabel('Sandbox').check()
  await page.getByLabel('Or paste rows').fill('valid1@a.example\ntimeout1@a.example\n')
  await start(page)
  await page.getByRole('heading', { name: 'Re-verify' }).waitFor()
  const first = page.url()
  await page.getByLabel('Interval in days').fill('7')
  await page.getByRole('button', { name: 'Re-verify on a schedule' }).click()
  await page.getByText('This list is re-verified every 7 days').waitFor()
  await page.getByLabel('Rows', { exact: true }).selectOption('Unknown')
  await page.getByRole('button', { name: 'Re-verify now' }).click()
  await page.getByText('1 row re-verified so far, 0 with a different class.').waitFor()
  await visitor.check('list-changes')
  await page.getByRole('link', { name: 'an earlier list' }).click()
  await page.waitForURL(first)
  await page.getByRole('button', { name: 'Pause schedule' }).click()
  await page.getByText('is paused').waitFor()
  await visitor.check('list-schedule')
})

test('without JavaScript a list is started and shown', async () => {
  const visitor = await set.open({ scripts: false })
  const { page } = visitor
  await visitor.go('/lists/new')
  await page.getByLabel('Sandbox').check()
  await page.getByLabel('File').setInputFiles({
    name: 'plain.csv',
    mimeType: 'text/csv',
    buffer: Buffer.from('who,where\nvalid@a.example,x\nrisky@a.example,y\n'),
  })
  await start(page)
  const id = page.url().split('/').at(-1) ?? ''
  await new EvClient({ apiKey: set.key, baseUrl: set.url }).jobs.get(id, { wait: 20 })
  await page.reload()
  await page.getByText('Verified 2 rows').waitFor()
  await page.getByRole('link', { name: /^Risky \d/ }).click()
  expect(await rowsShown(page).count()).toBe(1)
  await page.getByRole('link', { name: 'risky@a.example' }).click()
  await page.getByRole('heading', { name: 'risky@a.example' }).waitFor()
  await page.getByRole('button', { name: 'Re-verify', exact: true }).click()
  await page.getByRole('heading', { name: 'New result for risky@a.example' }).waitFor()
  await page.getByRole('link', { name: 'Close' }).click()
  expect(await page.getByRole('dialog').count()).toBe(0)
  await page.getByRole('link', { name: 'All 2' }).click()
  await page.getByRole('link', { name: 'Address' }).click()
  expect(await rowsShown(page).first().textContent()).toContain('risky@a.example')
  await page.getByLabel('Search addresses').fill('VALID')
  await page.getByRole('button', { name: 'Apply' }).click()
  expect(await rowsShown(page).count()).toBe(1)
})

test('upload errors are shown without leaving the page', async () => {
  const visitor = await set.open()
  const { page } = visitor
  await visitor.go('/lists/new')
  const empty = { name: 'empty.csv', mimeType: 'text/csv', buffer: Buffer.from('') }
  await page.getByLabel('File').setInputFiles(empty)
  await page.getByText('The list is empty.').waitFor()
  await visitor.go('/lists/new')
  await page.route('**/lists/new?dry_run=true', route =>
    route.continue({ headers: { ...route.request().headers(), 'x-csrf-token': 'wrong' } }),
  )
  await page.getByLabel('Or paste rows').fill('ann@polite.test')
  await page.getByText('This form does not belong to your session').waitFor()
  expect(await page.getByLabel('Or paste rows').inputValue()).toBe('ann@polite.test')
  await page.unroute('**/lists/new?dry_run=true')
  // An unexpected error is shown above the page until a request succeeds.
  await page.route('**/lists/new?dry_run=true', route =>
    route.fulfill({
      status: 503,
      headers: { 'HX-Retarget': '#notes', 'HX-Reswap': 'innerHTML', 'HX-Reselect': '.notice' },
      body: '<div class="notice is-bad" role="alert"><p>ev is away.</p></div>',
    }),
  )
  const retry = page.getByRole('button', { name: 'Try again' })
  const answered = page.waitForResponse('**/lists/new?dry_run=true')
  await retry.click()
  await (await answered).finished()
  await page.getByText('ev is away.').waitFor()
  await page.unroute('**/lists/new?dry_run=true')
  await retry.click()
  await page.getByRole('button', { name: 'Start' }).waitFor()
  expect(await retry.count()).toBe(0)
  expect(await page.getByText('ev is away.').count()).toBe(0)
  await page.route('**/lists/new', route => route.abort('connectionreset'))
  await page.getByRole('button', { name: 'Start' }).click()
  await page.getByText('The upload was interrupted.').waitFor()
  await page.unroute('**/lists/new')
  await start(page)
})

test('a list is previewed when it changes, with one button, and an option renews the preview', async () => {
  const visitor = await set.open()
  const { page } = visitor
  const list = page.getByLabel('Or paste rows')
  const buttons = page.locator('#upload button')
  await visitor.go('/lists/new')
  expect(await buttons.count()).toBe(0)
  await list.fill('ann@polite.test\n')
  await figure(page, 'Rows').getByText('1').waitFor()
  expect(await buttons.allTextContents()).toEqual(['Start'])
  // Typed rows are previewed after a pause.
  await list.press('End')
  await list.pressSequentially('\nbob@polite.test')
  expect(await buttons.count()).toBe(0)
  await figure(page, 'Rows').getByText('2').waitFor()
  await page.getByLabel('Sandbox').check()
  await figure(page, 'Credits needed').getByText('None (sandbox)').waitFor()
  await page.getByLabel('File').setInputFiles({
    name: 'plain.csv',
    mimeType: 'text/csv',
    buffer: Buffer.from('ann@polite.test\n'),
  })
  await page.getByText('Choose a file or paste rows, not both.').waitFor()
  expect(await page.getByRole('button', { name: 'Start' }).count()).toBe(0)
  await list.fill('')
  await figure(page, 'Rows').getByText('1').waitFor()
})

test('an account without an address gets one with the list that notifies it', async () => {
  const visitor = await set.open()
  const { page } = visitor
  await paste(visitor, 'valid@a.example\n')
  await page.getByLabel('Sandbox').check()
  await page.getByLabel('Notify by email').check()
  await page.getByRole('button', { name: 'Start' }).click()
  await page.getByText('This account has no email address. Enter one next to').waitFor()
  await page.getByLabel('Email address of the account').fill('owner@shop.example')
  await start(page)
  await visitor.go('/account')
  expect(await page.getByLabel('Email address').inputValue()).toBe('owner@shop.example')
  await visitor.go('/lists/new')
  await page.getByText('owner@shop.example receives an email').waitFor()
})
