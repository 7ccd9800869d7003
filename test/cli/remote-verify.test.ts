import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import { emptyFolder, type Ran, runEv, simulatorFlags } from '../support/cli.ts'
import { type CliService, request, startService } from '../support/cli-service.ts'

// `ev --url … verify` prints of a result in JSON what `ev verify` prints of the result itself.

let simulator: Simulator
let service: CliService
beforeAll(async () => {
  simulator = await startSimulator({
    mailboxes: ['ann', 'ben'],
    domains: {
      'good.test': { mx: [[10, 'mx.good.test']] },
      'open.test': { mx: [[10, 'mx.open.test']], txt: ['v=spf1 -all'] },
      'asked.test': { mx: [[10, 'mx.asked.test']] },
      'any.test': { mx: [[10, 'mx.any.test']] },
      'dead.test': { mx: [[10, 'mx.dead.test']] },
      'wary.test': { mx: [[10, 'mx.wary.test']] },
      'later.test': { mx: [[10, 'mx.later.test']] },
      'null.test': { mx: [[0, '.']] },
      'web.test': { a: ['127.0.0.1'] },
    },
    hosts: {
      'mx.good.test': { behavior: 'polite' },
      'mx.open.test': { behavior: 'catch-all' },
      'mx.asked.test': { behavior: 'polite' },
      'mx.any.test': { behavior: 'catch-all' },
      'mx.dead.test': { behavior: 'dead' },
      'mx.wary.test': { behavior: 'blocks-us' },
      'mx.later.test': { behavior: 'greylist' },
    },
  })
  service = await startService(emptyFolder(), simulatorFlags(simulator))
})
afterAll(() => simulator.close())

const here = (...args: string[]) =>
  runEv(['verify', ...args, ...simulatorFlags(simulator)], { home: emptyFolder() })

const there = (...args: string[]) =>
  runEv(['verify', ...args], {
    home: emptyFolder(),
    environment: { EV_URL: service.url, EV_KEY: service.key },
  })

/** Without what differs from run to run: times, and the random recipient of the catch-all test. */
const comparable = ({ code, stdout }: Ran) => ({
  code,
  stdout: stdout
    .replace(/("response_time": ?)\d+|("\w+_ms": ?)\d+/g, '$1$2')
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '')
    .replace(/^( *time +).+$/gm, '$1')
    .replace(/<(?!eve@)[^@>]*@/g, '<@'),
})

async function expectSame(...args: string[]): Promise<void> {
  expect(comparable(await there(...args))).toEqual(comparable(await here(...args)))
}

// The service caches answers and what it learns about domains. So each case uses another address,
// and each dialogue another domain.

test.each([
  'ann@good.test',
  'gone@good.test',
  'ann@open.test',
  'ann@dead.test',
  'ann@later.test',
  'ann@null.test',
  'ann@web.test',
  'ann@none.test',
  'info@good.tset',
])('the result of %s', address => expectSame(address))

test.each([
  'ben@good.test',
  'lost@good.test',
  'ben@open.test',
  'ben@dead.test',
  'ben@wary.test',
  'ben@later.test',
  'ben@null.test',
  'ben@web.test',
  'ben@none.test',
])('the evidence of %s', address => expectSame(address, '--json', '--include', 'flags,evidence'))

test.each(['eve@asked.test', 'eve@any.test'])('the dialogue about %s', address =>
  expectSame(address, '--explain'),
)

test('a reported bounce', async () => {
  const email = 'mia@open.test'
  const items = [{ email, kind: 'bounced', code: 550, enhanced_code: '5.1.1' }]
  const reported = await request(service, service.key, '/v1/feedback', { body: { items } })
  expect(reported.status, await reported.text()).toBe(200)
  const { stdout } = await there(email)
  expect(stdout).toMatch(/^ *feedback +bounced on \d{4}-\d\d-\d\d, which decides$/m)
})
