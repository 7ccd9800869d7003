import { spawnSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type SimulatorProcess, startSimulatorProcess } from '../src/simulator/simulator-process.ts'
import { emptyFolder } from './support/home.ts'
import { codeBlocks, ROOT } from './support/markdown.ts'

// Runs the commands of docs/recipes on the files of fixtures/recipes, with simulated mail servers.

const PAGES = readdirSync(join(ROOT, 'docs/recipes')).map(name => `docs/recipes/${name}`)
const folder = emptyFolder()
let simulator: SimulatorProcess

beforeAll(async () => {
  cpSync(join(ROOT, 'fixtures/recipes'), folder, { recursive: true })
  mkdirSync(join(folder, 'bin'))
  symlinkSync(join(ROOT, 'bin/ev.js'), join(folder, 'bin/ev'))
  simulator = await startSimulatorProcess(join(ROOT, 'fixtures/simulator/demo.json'))
})

afterAll(() => simulator.close())

function run(page: string): string {
  const script = codeBlocks(`docs/recipes/${page}.md`).flatMap(({ language, text }) =>
    language === 'sh' ? [text] : [],
  )
  expect(script).not.toEqual([])
  const { status, stdout, stderr } = spawnSync(
    'bash',
    ['--norc', '-e', '-o', 'pipefail', '-c', script.join('\n')],
    {
      cwd: folder,
      encoding: 'utf8',
      env: {
        PATH: `${join(folder, 'bin')}:${process.env.PATH}`,
        HOME: folder,
        EV_DNS: simulator.dnsAddress,
        EV_SMTP_PORT: String(simulator.smtpPort),
        EV_ALLOW_RANGES: '127.0.0.0/8',
        EV_SPECIAL_DOMAINS: 'on',
        EV_HELO: 'probe.example.com',
      },
    },
  )
  expect(status, stderr).toBe(0)
  return stdout
}

const read = (file: string): string => readFileSync(join(folder, file), 'utf8')
const rowsOf = (file: string): string[] => read(file).trim().split('\n').slice(1)

describe('the recipe for', () => {
  test('mailing lists finds what to remove, and keeps the columns of the export', () => {
    run('mailing-lists')
    expect(read('checked.csv')).toMatch(/^"?Email Address"?,"?First Name"?,.*TAGS,.*ev_class/)
    expect(rowsOf('checked.csv')).toHaveLength(5)
    expect(rowsOf('bad.csv').map(row => row.split(',')[0])).toEqual([
      ...['gone@lindgren-bakery.test'],
    ])
    expect(rowsOf('hubspot-import.csv')).toHaveLength(3)
    expect(rowsOf('opt-out.csv').map(row => row.split(',')[0])).toEqual(['552', '554'])
    expect(rowsOf('blocklist.csv')).toEqual([expect.stringContaining('missing@greenroof.test')])
  })

  test('Postfix reports what was sent and what bounced', () => {
    const printed = run('postfix')
    expect(rowsOf('feedback.csv')).toEqual([
      'anna@northwind-tea.example,delivered,2.0.0,"250 2.0.0 Ok: queued as 7B1C2"',
      expect.stringMatching(/^gone@lindgren-bakery\.test,bounced,5\.1\.1,"host .* User unknown/),
      'ben@harbourlight.example,delivered,2.0.0,"250 2.0.0 Ok"',
    ])
    expect(printed).toContain('3')
  })

  test('nightly runs writes the results of the day', () => {
    cpSync(join(folder, 'subscribers.csv'), join(folder, 'new-contacts.csv'))
    run('nightly')
    const written = readdirSync(folder).filter(name => /^(checked|bad)-\d{4}-/.test(name))
    expect(written.map(name => rowsOf(name).length).toSorted()).toEqual([1, 2])
  })

  test('n8n accepts signed events only', () => {
    const [code = ''] = codeBlocks('docs/recipes/automation.md').flatMap(({ language, text }) =>
      language === 'js' ? [text] : [],
    )
    const node = new Function('$input', '$env', 'require', code)
    const body = '{"event":"batch.completed"}'
    const answer = (secret: string) => {
      const signature = createHmac('sha256', secret).update(body).digest('hex')
      const item = { json: { headers: { 'x-ev-signature': signature }, body } }
      const env = { EV_WEBHOOK_SECRET: 'whsec_a' }
      return node({ first: () => item }, env, createRequire(import.meta.url))
    }
    expect(answer('whsec_a')).toEqual([{ json: { event: 'batch.completed' } }])
    expect(() => answer('whsec_b')).toThrow('signature')
  })

  test.each(PAGES.filter(page => !page.endsWith('README.md')))('%s is in the index', page => {
    const index = readFileSync(join(ROOT, 'docs/recipes/README.md'), 'utf8')
    expect(index).toContain(`(${page.split('/').at(-1)})`)
  })
})
