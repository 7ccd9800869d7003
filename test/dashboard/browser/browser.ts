import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, expect } from 'vitest'
import type { Scenario } from '../../../src/simulator/scenario.ts'
import {
  type SimulatorProcess,
  startScenarioProcess,
  startSimulatorProcess,
} from '../../../src/simulator/simulator-process.ts'
import { emptyFolder, simulatorFlags } from '../../support/ev-process.ts'
import { type ServiceProcess, startService } from '../../support/service-process.ts'
import { startChromium } from './chromium.ts'

export type Theme = 'light' | 'dark'

/** A service process with the simulator in place of the internet, and a browser. */
export type Stage = {
  readonly url: string
  /** The key with all scopes. */
  readonly key: string
  /** The working directory of the service. */
  readonly home: string
  /** Opens a browser, signed in unless `key` is null; closed after the test file. */
  open(o?: {
    readonly key?: string | null
    readonly theme?: Theme
    readonly width?: number
    /** False disables JavaScript. */
    readonly scripts?: boolean
  }): Promise<Visitor>
}

/** A user with a browser page. */
export type Visitor = {
  readonly page: Page
  readonly context: BrowserContext
  /** Errors so far: script errors, policy violations and missing files. */
  readonly faults: string[]
  /** Opens a path of the dashboard and waits until it is loaded. */
  go(path: string): Promise<void>
  /**
   * Checks the page: no serious axe violation in both themes, no overflow, on a phone either, and
   * no browser errors.
   */
  check(name: string): Promise<void>
  /**
   * Checks the page; with EV_SCREENSHOTS=1 also writes a screenshot to docs/screenshots/, of the
   * full page or its upper pixels.
   */
  picture(name: string, heightMax?: number): Promise<void>
}

export type StageOptions = {
  /** The scenario; defaults to that of `ev simulate --example`. */
  readonly scenario?: Scenario
  readonly args?: readonly string[]
}

/** Starts everything before the tests of a file and stops it after them. */
export function stage({ scenario, args = [] }: StageOptions = {}): Stage {
  const home = emptyFolder()
  let browser: Browser
  let simulator: SimulatorProcess
  let service: ServiceProcess

  beforeAll(async () => {
    simulator = await (scenario === undefined
      ? startSimulatorProcess(EXAMPLE)
      : startScenarioProcess(scenario))
    service = await startService(home, [...simulatorFlags(simulator), '--limits', 'off', ...args])
    browser = await startChromium()
  }, 120_000)

  afterAll(async () => {
    // A test may end while a page still sends requests; ignore their errors.
    const contexts = browser?.contexts() ?? []
    await Promise.all(contexts.map(context => context.unrouteAll({ behavior: 'ignoreErrors' })))
    await browser?.close()
    await service?.end('SIGTERM')
    await simulator?.close()
  }, 60_000)

  return {
    home,
    open: o => openVisitor({ browser, service }, o ?? {}),
    get url() {
      return service.url
    },
    get key() {
      return service.key
    },
  }
}

const EXAMPLE = join(import.meta.dirname, '../../../src/simulator/example.json')
const SCREENSHOTS = join(import.meta.dirname, '../../../docs/screenshots')
/** Generous, as other tests may use the CPU. */
const TIMEOUT_MS = 120_000
const PHONE = 360
const HEIGHT = 900

async function openVisitor(
  { browser, service }: { browser: Browser; service: ServiceProcess },
  {
    key = service.key,
    theme = 'light',
    width = 1_200,
    scripts = true,
  }: Parameters<Stage['open']>[0] & object,
): Promise<Visitor> {
  const context = await browser.newContext({
    javaScriptEnabled: scripts,
    baseURL: service.url,
    colorScheme: theme,
    viewport: { width, height: HEIGHT },
    locale: 'en-GB',
    timezoneId: 'Europe/Berlin',
    acceptDownloads: true,
  })
  const page = await context.newPage()
  page.setDefaultTimeout(TIMEOUT_MS)
  const faults: string[] = []
  page.on('pageerror', error => faults.push(error.message))
  page.on('dialog', dialog => {
    faults.push(`a dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.on('console', message => {
    if (message.type() === 'error') faults.push(message.text())
  })
  const visitor: Visitor = {
    page,
    context,
    faults,
    go: async path => void (await page.goto(path, { waitUntil: 'load' })),
    check: name => check(visitor, name, theme),
    async picture(name, heightMax = Number.POSITIVE_INFINITY) {
      await check(visitor, name, theme)
      if (process.env.EV_SCREENSHOTS !== '1') return
      mkdirSync(SCREENSHOTS, { recursive: true })
      // The frame of a page that was scrolled would be in its middle.
      await page.evaluate('window.scrollTo(0, 0)')
      const whole = await page.evaluate<number>('document.documentElement.scrollHeight')
      const clip = { x: 0, y: 0, width, height: Math.min(whole, heightMax) }
      await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`), fullPage: true, clip })
    },
  }
  if (key !== null) await signIn(page, key)
  return visitor
}

export async function signIn(page: Page, key: string): Promise<void> {
  await page.goto('/sign-in')
  await page.getByLabel('API key').fill(key)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.waitForURL(url => !url.pathname.startsWith('/sign-in'))
}

async function check({ page, faults }: Visitor, name: string, theme: Theme): Promise<void> {
  const size = page.viewportSize() ?? { width: 1_200, height: HEIGHT }
  for (const one of [theme === 'light' ? 'dark' : 'light', theme] as const) {
    await page.emulateMedia({ colorScheme: one })
    expect(await seriousFaults(page), `${name}, ${one}`).toEqual([])
  }
  await page.setViewportSize({ width: PHONE, height: HEIGHT })
  // Scripts observe the change with the next frame.
  await page.evaluate(
    'new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))',
  )
  const onPhone = [...(await page.evaluate<string[]>(OVERFLOWING)), ...(await seriousFaults(page))]
  await page.setViewportSize(size)
  expect(onPhone, `${name}, on a phone`).toEqual([])
  expect(faults, name).toEqual([])
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

type Violation = {
  readonly id: string
  readonly impact: string
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[]
}

async function seriousFaults(page: Page): Promise<string[]> {
  if (!(await page.evaluate<boolean>('"axe" in window'))) await page.evaluate(AXE)
  const found = await page.evaluate<Violation[]>(
    'axe.run(document).then(({ violations }) => violations)',
  )
  return found
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`),
    )
}

/** Finds elements that make the page wider than the screen outside a scrollable box. */
const OVERFLOWING = `
  document.documentElement.scrollWidth <= document.documentElement.clientWidth ? [] :
  [...document.querySelectorAll('main *')]
    .filter(one => one.getBoundingClientRect().right > document.documentElement.clientWidth && !one.closest('.scroll'))
    .map(one => one.outerHTML.slice(0, 120)).concat('the page is too wide')`
