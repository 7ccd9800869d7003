import { afterAll, beforeAll, expect, test } from 'vitest'
import { EvClient } from '../../../src/client/client.ts'
import {
  type SimulatorProcess,
  startScenarioProcess,
} from '../../../src/simulator/simulator-process.ts'
import { emptyFolder, simulatorFlags } from '../../support/ev-process.ts'
import { freePort } from '../../support/free-port.ts'
import { type ServiceProcess, startService } from '../../support/service-process.ts'
import { signIn } from './browser.ts'
import { startChromium } from './chromium.ts'

const home = emptyFolder()
let simulator: SimulatorProcess
let service: ServiceProcess
let port: number

/** Starts the service, on the same port and with the same data each time. */
const start = () =>
  startService(home, [
    ...[...simulatorFlags(simulator), '--limits', 'off', '--listen', `127.0.0.1:${port}`],
  ])

beforeAll(async () => {
  simulator = await startScenarioProcess({
    mailboxes: ['user*'],
    domains: { 'slow.test': { mx: [[10, 'mx.slow.test']] } },
    hosts: { 'mx.slow.test': { behavior: 'slow', ms: 300 } },
  })
  port = await freePort()
  service = await start()
})
afterAll(async () => {
  await service.end('SIGTERM')
  await simulator.close()
})

test('the page of a running list says that the service died, and goes on when it is back', async () => {
  const browser = await startChromium()
  const page = await browser.newPage({ baseURL: service.url })
  await signIn(page, service.key)
  const client = new EvClient({ apiKey: service.key, baseUrl: service.url })
  const rows = Array.from({ length: 60 }, (_, n) => `user${n}@slow.test`)
  const { job_id } = await client.file(new Blob([rows.join('\n')]), { filename: 'list.csv' })
  await page.goto(`/lists/${job_id}`)
  const done = page.locator('#live-figures dd').first()
  await expect.poll(() => done.textContent()).not.toBe('0')

  await service.end('SIGKILL')
  const lost = page.getByText('Connection lost. Reconnecting')
  await lost.waitFor()
  // Actions keep the page.
  await page.getByRole('button', { name: 'Cancel' }).click()
  expect(page.url()).toContain(job_id)
  expect(await done.isVisible()).toBe(true)

  service = await start()
  await lost.waitFor({ state: 'detached' })
  await page.getByText('Verified 60 rows').waitFor()
  expect(await page.locator('#live').count()).toBe(0)
  await browser.close()
})
