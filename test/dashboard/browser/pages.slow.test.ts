import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestDashboard } from '../../support/dashboard.ts'
import { type Receiver, startReceiver } from '../../support/http-receiver.ts'
import { waitUntil } from '../../support/wait.ts'
import type { Visitor } from './browser.ts'
import { clientOf, DEMO_LIST, demoStage, seedUsage } from './demo.ts'

// Opens every page in each state, in both themes, on a desktop and on phones, and finds faults that
// users would see. EV_PAGES=folder writes a picture of each.

const DESKTOP = 1_280
const PHONE = 390
/** The window of the phone is changed to this width. */
const NARROW = 360
const WIDTHS = [DESKTOP, PHONE]
const HEIGHT = 900

/** These hosts hold a connection longer than any test. */
const TARPITS = ['tarpit', ...WIDTHS.map(width => `tarpit-${width}`)]
const set = demoStage({
  domains: Object.fromEntries(
    TARPITS.map(name => [`${name}.test`, { mx: [[10, `mx.${name}.test`]] }]),
  ),
  hosts: Object.fromEntries(
    TARPITS.map(name => [`mx.${name}.test`, { behavior: 'slow', ms: 60_000 }]),
  ),
})
const client = () => clientOf(set)

type Who = 'owner' | 'limited' | 'nobody'
type State = {
  readonly name: string
  readonly path: string | (() => string)
  /** The visitor who opens the page. Default: `owner`, with a key of all scopes. */
  readonly who?: Who
  readonly status?: number
  /** Defaults to both. */
  readonly width?: number
  /** Steps of the user after the page has loaded. */
  readonly act?: (page: Page) => Promise<unknown>
  /** A part that is inserted after load. */
  readonly ready?: string
}

/** IDs of what is created before. */
const ids: Record<string, string> = {}
const idOf = (name: string) => ids[name] ?? ''

const click = (page: Page, name: string | RegExp) =>
  page.getByRole('button', { name, exact: true }).click()
const open = (page: Page, text: string) =>
  page.locator('summary', { hasText: text }).first().click()
async function openAccount(page: Page): Promise<void> {
  const menu = page.getByRole('button', { name: 'Menu' })
  if (await menu.isVisible()) await menu.click()
  await open(page, 'default')
}
const chart = '.chart canvas'

async function verify(page: Page, address: string, until: string): Promise<void> {
  await page.getByLabel('Email address').fill(address)
  await page.keyboard.press('Enter')
  await page.locator(until).waitFor()
}

const verified = (address: string, verdict: string) => (page: Page) =>
  verify(page, address, `#verdict.is-${verdict}`)

/** Before anything exists. */
const EMPTY: readonly State[] = [
  { name: 'overview-empty', path: '/overview' },
  { name: 'lists-empty', path: '/lists' },
  { name: 'usage-empty', path: '/usage' },
  { name: 'feedback-empty', path: '/feedback' },
  { name: 'sources-empty', path: '/feedback/sources' },
  { name: 'webhooks-empty', path: '/webhooks' },
  { name: 'keys-first', path: '/keys' },
]

const PAGES: readonly State[] = [
  { name: 'sign-in', path: '/sign-in', who: 'nobody' },
  {
    name: 'sign-in-refused',
    path: '/sign-in',
    who: 'nobody',
    status: 401,
    async act(page) {
      await page.getByLabel('API key').fill('ev_live_x')
      await click(page, 'Sign in')
      await page.getByRole('alert').waitFor()
    },
  },
  { name: 'welcome-expired', path: '/welcome/x', who: 'nobody' },
  { name: 'invitation-expired', path: '/invitation/x', who: 'nobody', status: 404 },
  { name: 'docs-public', path: '/docs', who: 'nobody' },
  { name: 'docs-guide', path: '/docs/webhooks', who: 'nobody' },
  { name: 'not-found-public', path: '/nothing', who: 'nobody', status: 404 },
  { name: 'docs-reference', path: '/docs/reference/keys' },
  {
    name: 'docs-fields',
    path: '/docs/reference/service',
    act: page => page.locator('summary', { hasText: 'Fields' }).first().click(),
  },
  {
    name: 'docs-search',
    path: '/docs/errors',
    async act(page) {
      const menu = page.getByRole('button', { name: 'Menu' })
      if (await menu.isVisible()) await menu.click()
      await page.getByLabel('Search the documentation').fill('rotate a key')
      await page.locator('.found a').first().waitFor()
    },
  },
  { name: 'overview', path: '/overview', ready: chart },
  { name: 'overview-account', path: '/overview', ready: chart, act: openAccount },
  { name: 'overview-limited', path: '/overview', who: 'limited' },
  { name: 'verify-before', path: '/verify' },
  {
    name: 'verify-during',
    path: '/verify',
    // A server that has timed out once is not contacted again at once.
    act: page =>
      verify(page, `ann@tarpit-${page.viewportSize()?.width}.test`, '#verdict.is-running'),
  },
  {
    name: 'verify-deliverable',
    path: '/verify',
    act: verified('anna@northwind-tea.example', 'deliverable'),
  },
  {
    name: 'verify-undeliverable',
    path: '/verify',
    act: verified('nobody@northwind-tea.example', 'undeliverable'),
  },
  { name: 'verify-risky', path: '/verify', act: verified('anna@everything.test', 'risky') },
  { name: 'verify-unknown', path: '/verify', act: verified('anna@fortress.test', 'unknown') },
  {
    name: 'verify-steps',
    path: '/verify',
    async act(page) {
      await verify(page, 'anna@gmial.com', '#verdict:not(.is-running) h2')
      await page.locator('#outcome summary').click()
    },
  },
  { name: 'verify-limited', path: '/verify', who: 'limited' },
  { name: 'lists', path: '/lists' },
  { name: 'lists-none', path: '/lists?status=queued' },
  { name: 'list-new', path: '/lists/new' },
  {
    name: 'list-preview',
    path: '/lists/new',
    async act(page) {
      await page.getByLabel('File').setInputFiles(DEMO_LIST)
      await page.getByRole('button', { name: 'Start' }).waitFor()
    },
  },
  {
    name: 'list-refused',
    path: '/lists/new',
    status: 400,
    async act(page) {
      const empty = { name: 'empty.csv', mimeType: 'text/csv', buffer: Buffer.from('') }
      await page.getByLabel('File').setInputFiles(empty)
      await page.locator('#sending .notice').waitFor()
    },
  },
  { name: 'list-running', path: () => `/lists/${idOf('running')}`, ready: '.donut' },
  { name: 'list-paused', path: () => `/lists/${idOf('paused')}`, ready: '.donut' },
  { name: 'list-completed', path: () => `/lists/${idOf('completed')}` },
  {
    name: 'list-menu',
    path: () => `/lists/${idOf('completed')}`,
    act: page => open(page, 'More downloads'),
  },
  {
    name: 'list-share',
    path: () => `/lists/${idOf('completed')}`,
    act: page => open(page, 'Share'),
  },
  {
    name: 'list-delete',
    path: () => `/lists/${idOf('completed')}`,
    act: page => open(page, 'Delete'),
  },
  { name: 'list-filtered', path: () => `/lists/${idOf('completed')}?class=risky&reason=catch_all` },
  { name: 'list-no-rows', path: () => `/lists/${idOf('completed')}?search=nothing` },
  { name: 'list-wrong-row', path: () => `/lists/${idOf('completed')}?row=x` },
  { name: 'list-sorted', path: () => `/lists/${idOf('completed')}?sort=email&order=desc` },
  { name: 'list-row', path: () => `/lists/${idOf('completed')}?open=2`, ready: '.panel' },
  { name: 'list-row-missing', path: () => `/lists/${idOf('completed')}?open=x`, ready: '.panel' },
  {
    name: 'list-row-verified',
    path: () => `/lists/${idOf('completed')}?open=2`,
    async act(page) {
      await click(page, 'Re-verify')
      await page.locator('.panel pre.dialogue').waitFor()
    },
  },
  { name: 'list-charts', path: () => `/lists/${idOf('completed')}/charts` },
  { name: 'list-failed', path: () => `/lists/${idOf('failed')}` },
  { name: 'list-cancelled', path: () => `/lists/${idOf('cancelled')}` },
  { name: 'list-again', path: () => `/lists/${idOf('again')}` },
  { name: 'list-missing', path: '/lists/job_none', status: 404 },
  { name: 'usage', path: '/usage?period=month', ready: chart },
  { name: 'feedback', path: '/feedback', ready: '.reliability svg' },
  { name: 'sources', path: '/feedback/sources' },
  { name: 'source-choice', path: '/feedback/sources/new' },
  { name: 'source-new', path: '/feedback/sources/new?provider=mailgun' },
  { name: 'source', path: () => `/feedback/sources/${idOf('source')}` },
  { name: 'keys', path: '/keys' },
  { name: 'key-new', path: '/keys/new' },
  { name: 'key-new-publishable', path: '/keys/new-publishable' },
  { name: 'key', path: () => `/keys/${idOf('key')}` },
  { name: 'key-revoke', path: () => `/keys/${idOf('key')}`, act: page => open(page, 'Revoke key') },
  {
    name: 'key-created',
    path: '/keys/new',
    async act(page) {
      await page.getByLabel('Name').fill('Newsletter')
      await click(page, 'Create key')
      await page.getByRole('heading', { name: 'Key created' }).waitFor()
    },
  },
  { name: 'webhooks', path: '/webhooks' },
  { name: 'webhook-new', path: '/webhooks/new' },
  {
    name: 'webhook-refused',
    path: '/webhooks/new',
    status: 400,
    async act(page) {
      await page.getByLabel('URL').fill('https://10.0.0.1/')
      await click(page, 'Create webhook')
      await page.getByRole('alert').waitFor()
    },
  },
  { name: 'webhook-events', path: '/webhooks/events' },
  { name: 'webhook', path: () => `/webhooks/${idOf('webhook')}` },
  {
    name: 'webhook-tested',
    path: () => `/webhooks/${idOf('webhook')}`,
    async act(page) {
      await click(page, 'Send test event')
      await page.getByText('Test result').waitFor()
      // The click asked for the result above the deliveries. It comes with the answer of the receiver,
      // which may take longer than the half second that Chromium attributes to a click.
      await page.evaluate('window.shifts.length = 0')
    },
  },
  {
    name: 'webhook-attempt',
    path: () => `/webhooks/${idOf('webhook')}/deliveries/${idOf('delivery')}`,
  },
  { name: 'account', path: '/account' },
  {
    name: 'account-refused',
    path: '/account',
    status: 400,
    async act(page) {
      await page.getByLabel('Name').fill(' ')
      await click(page, 'Save')
      await page.getByRole('alert').waitFor()
    },
  },
  { name: 'people', path: '/people' },
  { name: 'audit', path: '/audit' },
  { name: 'audit-none', path: '/audit?action=webhook.deleted' },
  { name: 'sessions', path: '/sessions' },
  { name: 'health', path: '/doctor', ready: 'text=Checked at' },
  { name: 'limited', path: '/webhooks', who: 'limited', status: 403 },
  { name: 'not-found', path: '/nothing', status: 404 },
]

/** When a table is missing. */
const BROKEN: readonly State[] = [{ name: 'broken', path: '/webhooks', status: 500 }]

/** GET routes that are not pages: fragments, files, streams and redirects. */
const NOT_PAGES = [
  ...['/', '/assets/:version/:name', '/form.js', '/overview/lists', '/verify/recent'],
  ...['/overview/machine', '/overview/attention'],
  ...['/lists/:id/download', '/lists/:id/events', '/doctor/status', '/doctor/findings'],
  ...['/sign-in/oidc', '/sign-in/oidc/callback', '/invitation/:token/oidc'],
]
/** Pages that need a person: people.slow.test.ts checks them. */
const OF_PEOPLE = ['/people/:id', '/profile', '/profile/two-factor']

test('every page of the dashboard is in the table', async () => {
  const { pages } = await createTestDashboard()
  const routes = pages.routes.filter(({ method }) => method === 'GET').map(({ path }) => path)
  const opened = [...EMPTY, ...PAGES].map(({ path }) => (typeof path === 'string' ? path : path()))
  const isOpened = (route: string) => {
    const pattern = new RegExp(`^${route.replaceAll(/:\w+(\{.+\})?/g, '[^/]*')}(?:\\?|$)`)
    return opened.some(path => pattern.test(path))
  }
  const others = [...NOT_PAGES, ...OF_PEOPLE]
  const missing = new Set(routes.filter(route => !others.includes(route) && !isOpened(route)))
  expect([...missing]).toEqual([])
  expect(others.filter(route => !routes.includes(route))).toEqual([])
})

const visitors = new Map<string, Visitor>()
let receiver: Receiver

beforeAll(async () => {
  receiver = await startReceiver()
  const limited = await client().keys.create({ name: 'Dashboard only', scopes: ['dashboard'] })
  const keys = { owner: set.key, limited: limited.key, nobody: null }
  for (const width of WIDTHS) {
    for (const [who, key] of Object.entries(keys)) {
      const visitor = await set.open({ key, width })
      await visitor.page.addInitScript(COUNT_SHIFTS)
      visitors.set(`${who} ${width}`, visitor)
    }
  }
})
afterAll(() => receiver.close())

/** Sums the layout shifts of a page that no click or key caused. */
const COUNT_SHIFTS = `
  window.shifts = []
  new PerformanceObserver(list => {
    for (const { value, hadRecentInput, sources } of list.getEntries())
      if (!hadRecentInput) window.shifts.push(value.toFixed(4) + ' ' + sources.map(({ node }) => node?.outerHTML ?? node?.nodeValue).join(' ').slice(0, 160))
  }).observe({ type: 'layout-shift', buffered: true })`

const LAYOUT_FAULTS = readFileSync(join(import.meta.dirname, 'layout-faults.js'), 'utf8')
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** All rules, those that are not yet stable too. */
const ALL_RULES = {
  preload: false,
  runOnly: [
    ...['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice', 'experimental'],
  ],
}
/** A theme changes nothing but colors. */
const COLOR_RULES = { runOnly: ['color-contrast', 'link-in-text-block'] }

async function axeFaults(page: Page, options: object): Promise<string[]> {
  if (!(await page.evaluate<boolean>('"axe" in window'))) await page.evaluate(AXE)
  return page.evaluate<string[]>(`
    axe.run(document, ${JSON.stringify({ ...options, resultTypes: ['violations'] })}).then(({ violations }) =>
      violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => id + ': ' + html.slice(0, 160) + ' ' + failureSummary)))`)
}

/** Resolves when the fonts are loaded and the page is drawn with them. */
const settle = (page: Page) =>
  page.evaluate(`
    document.fonts.ready.then(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))))`)

async function faultsOf({ page }: Visitor, name: string): Promise<string[]> {
  const faults: string[] = []
  const width = page.viewportSize()?.width ?? 0
  const add = (theme: string, found: readonly string[]) =>
    faults.push(...found.map(fault => `${page.viewportSize()?.width} px, ${theme}: ${fault}`))
  await settle(page)
  add(
    'light',
    (await page.evaluate<string[]>('window.shifts')).map(shift => `the layout shifts by ${shift}`),
  )
  add('light', await axeFaults(page, ALL_RULES))
  // The focus that scripts set is visible after a key.
  await page.keyboard.press('Shift')
  for (const size of width === DESKTOP ? [DESKTOP] : [PHONE, NARROW]) {
    await page.setViewportSize({ width: size, height: HEIGHT })
    await settle(page)
    add('light', await page.evaluate<string[]>(LAYOUT_FAULTS))
    await takePicture(page, `${name}-${size}-light`)
  }
  await page.setViewportSize({ width, height: HEIGHT })
  await page.emulateMedia({ colorScheme: 'dark' })
  add('dark', await axeFaults(page, COLOR_RULES))
  await takePicture(page, `${name}-${width}-dark`)
  await page.emulateMedia({ colorScheme: 'light' })
  return faults
}

async function takePicture(page: Page, name: string): Promise<void> {
  const folder = process.env.EV_PAGES
  if (folder === undefined) return
  mkdirSync(folder, { recursive: true })
  // The frame of a page that was scrolled would be in its middle.
  await page.evaluate('window.scrollTo(0, 0)')
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true })
}

async function visit(state: State): Promise<void> {
  const { name, path, who = 'owner', status = 200, width: only, act, ready } = state
  const found = await Promise.all(
    WIDTHS.filter(width => width === (only ?? width)).map(async width => {
      const visitor = visitors.get(`${who} ${width}`)
      if (visitor === undefined) throw new Error('there is no visitor')
      const { page, faults } = visitor
      faults.length = 0
      const response = await page.goto(typeof path === 'string' ? path : path(), {
        waitUntil: 'load',
      })
      if (act === undefined) expect(response?.status(), name).toBe(status)
      if (ready !== undefined) await page.locator(ready).first().waitFor()
      await act?.(page)
      // Chromium reports the status of an error page as an error.
      const isExpected = (fault: string) => status >= 400 && fault.includes(`status of ${status}`)
      return [...(await faultsOf(visitor, name)), ...faults.filter(fault => !isExpected(fault))]
    }),
  )
  expect(found.flat()).toEqual([])
}

describe('of a new account', () => {
  test.each(EMPTY)('$name', visit)
})

describe('with data', () => {
  beforeAll(fill)
  test.each(PAGES)('$name', visit)
})

describe('without the database', () => {
  beforeAll(() =>
    withDatabase(database => database.exec('alter table webhook rename to webhook_x')),
  )
  afterAll(() => withDatabase(database => database.exec('alter table webhook_x rename to webhook')))
  test.each(BROKEN)('$name', visit)
})

function withDatabase(change: (database: Sqlite.Database) => void): void {
  const database = new Sqlite(join(set.home, 'data', 'ev.sqlite'))
  change(database)
  database.close()
}

/** Adds one of everything, in each state. */
async function fill(): Promise<void> {
  await seedUsage(set)
  await Promise.all([addLists(), addWebhooks(), addKeys(), addFeedback()])
}

async function addLists(): Promise<void> {
  const submit = async (name: string, file_name: string, rows: readonly string[]) => {
    const { job_id } = await client().file(new Blob([rows.join('\n')]), {
      filename: `${file_name}.csv`,
      name: file_name,
    })
    ids[name] = job_id
    return job_id
  }
  const demo = readFileSync(DEMO_LIST, 'utf8').trim().split('\n')
  const short = demo
    .filter(row => !/patience|moment|glacier|quiet|deadend|chance/.test(row))
    .slice(0, 120)
  const calm = demo.filter(row => /Email|northwind|lindgren|hosting|papermill|greenroof/.test(row))
  const many = (count: number, domain: string) => [
    'email',
    ...Array.from({ length: count }, (_, n) => `person${n}@${domain}`),
  ]
  const completed = await submit('completed', 'Newsletter, autumn', short)
  await client().waitForJob(completed)
  const { id } = await client().schedules.create({ job_id: completed, every_days: 30 })
  expect(id).toMatch(/^sch_/)
  const again = await client().jobs.reverify(completed, { only: ['unknown'] })
  ids.again = again.job_id
  await submit('failed', 'CRM export', calm.slice(0, 40))
  await submit('cancelled', 'Q4', calm.slice(0, 60))
  await Promise.all(['failed', 'cancelled'].map(name => client().waitForJob(idOf(name))))
  withDatabase(database => {
    for (const state of ['failed', 'cancelled'])
      database.prepare('update job set state = ? where id = ?').run(state, idOf(state))
  })
  await submit('running', 'Customers', [
    ...short.slice(0, 30),
    ...many(200, 'tarpit.test')
      .slice(1)
      .map(one => `0,x,${one},x,x`),
  ])
  await submit('paused', 'Old leads', many(120, 'harbourlight.example'))
}

async function addWebhooks(): Promise<void> {
  receiver.answer({ status: 200, body: 'thank you' })
  const { id } = await client().webhooks.create({
    url: receiver.url,
    events: ['verification.completed'],
    description: 'Billing',
    headers: { 'X-Team': 'growth' },
  })
  ids.webhook = id
  await client().webhooks.test(id)
  receiver.answer({ status: 500, body: 'not now' })
  await client().verify.later('ben.holm@atelier-noor.test')
  await waitUntil(() => receiver.received.length >= 2)
  const deliveries = client().webhooks.deliveries(id, { event: 'verification.completed' })
  for await (const { id: delivery } of deliveries) ids.delivery = delivery
}

async function addKeys(): Promise<void> {
  const { id } = await client().keys.create({
    name: 'CRM, nightly',
    scopes: ['verify:bulk', 'jobs:read', 'jobs:write'],
    allowed_ips: ['203.0.113.0/24'],
    rate_limit_per_minute: 600,
  })
  ids.key = id
  await client().keys.create({
    name: 'Sign-up form',
    publishable: true,
    allowed_domains: ['shop.example'],
  })
}

async function addFeedback(): Promise<void> {
  const { id } = await client().feedback.sources.create({
    provider: 'ses',
    key: 'arn:aws:sns:us-east-1:123456789012:ses-feedback',
  })
  ids.source = id
  withDatabase(database => {
    const count = database.prepare(
      'insert into feedback_count select id, 0, ?, ?, ?, ?, ? from account limit 1',
    )
    count.run('accepted_email', 'google', 98, 4_102, 71)
    count.run('catch_all/medium', 'hoster.example', 41, 160, 214)
    count.run('rejected_email', 'google', 99, 844, 3)
    database
      .prepare('insert into feedback_day select id, ?, ?, ?, ? from account limit 1')
      .run(Date.now() - (Date.now() % 86_400_000), 'api', 'bounced', 54)
  })
}
