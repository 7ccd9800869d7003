import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Simulator, startSimulator } from '../../../src/simulator/simulator.ts'
import { emptyFolder, runEv, simulatorFlags } from '../../support/cli.ts'
import { rowsIn, rowsOf } from '../../support/csv.ts'

const LIST = 'email\nvalid1@x.example\n'

/** A folder in which `ev bulk` runs again and again. */
function folder() {
  const home = emptyFolder()
  return {
    write: (name: string, content: string | Uint8Array) => writeFileSync(join(home, name), content),
    read: (name: string) => readFileSync(join(home, name)),
    rows: (name: string) => rowsIn(join(home, name)),
    bulk: (...args: readonly string[]) =>
      runEv(['bulk', 'list.csv', '--data-dir', 'data', ...args], { home }),
    ev: (...args: readonly string[]) => runEv([...args, '--data-dir', 'data'], { home }),
  }
}

describe.concurrent('an existing output file', () => {
  test('is replaced if an earlier run wrote it', async () => {
    const { write, bulk, rows } = folder()
    write('list.csv', LIST)
    expect((await bulk('--sandbox')).code).toBe(0)
    write('list.csv', 'email\nvalid1@x.example\nvalid2@x.example\n')
    expect((await bulk('--sandbox')).code).toBe(0)
    expect(rows('list.verified.csv')).toHaveLength(2)
  })

  test('is kept if ev did not write it, unless --force is set', async () => {
    const { write, read, bulk, rows } = folder()
    write('list.csv', LIST)
    write('out.csv', 'the only copy')
    const refused = await bulk('--sandbox', '-o', 'out.csv')
    expect(refused).toMatchObject({ code: 73, stdout: '' })
    expect(refused.stderr).toContain('out.csv exists, and ev did not write it')
    expect(refused.stderr).toContain('--force')
    expect(read('out.csv').toString()).toBe('the only copy')
    expect((await bulk('--sandbox', '-o', 'out.csv', '--force')).code).toBe(0)
    expect(rows('out.csv')).toHaveLength(1)
  })

  test('is kept if somebody edited it after ev wrote it', async () => {
    const { write, read, bulk } = folder()
    write('list.csv', LIST)
    expect((await bulk('--sandbox')).code).toBe(0)
    const edited = `${read('list.verified.csv')}a note\n`
    write('list.verified.csv', edited)
    expect((await bulk('--sandbox')).code).toBe(73)
    expect(read('list.verified.csv').toString()).toBe(edited)
  })

  test.each(['out.csv', 'out.csv.gz', 'out.ndjson', 'out.json', 'out.xlsx'])(
    'is replaced if it has the columns of ev, though its job is not known: %s',
    async name => {
      const { write, bulk } = folder()
      write('list.csv', LIST)
      expect((await bulk('--sandbox', '-o', name)).code).toBe(0)
      const elsewhere = ['--data-dir', 'data2']
      expect((await bulk('--sandbox', '-o', name, ...elsewhere)).code).toBe(0)
    },
  )

  test('is replaced if it is empty, as mktemp leaves it', async () => {
    const { write, bulk } = folder()
    write('list.csv', LIST)
    write('out.csv', '')
    expect((await bulk('--sandbox', '-o', 'out.csv')).code).toBe(0)
  })

  test.each(['deliverable', 'unknown'])('of a split is kept, for the class %s', async klass => {
    const { write, read, bulk } = folder()
    write('list.csv', LIST)
    write(`out.${klass}.csv`, 'mine')
    expect((await bulk('--sandbox', '--split', '-o', 'out.csv')).code).toBe(73)
    expect(read(`out.${klass}.csv`).toString()).toBe('mine')
  })
})

describe.concurrent('simulated results', () => {
  test('are called so in the first line, in the summary and in each row', async () => {
    const { write, bulk, rows } = folder()
    write('list.csv', LIST)
    const { stderr } = await bulk('--sandbox')
    expect(stderr).toMatch(/^SIMULATED \(--sandbox\): no mail server is contacted\./)
    expect(stderr).toMatch(/^ {2}SIMULATED results\n {2}deliverable/m)
    expect(rows('list.verified.csv')).toMatchObject([{ ev_simulated: 'true' }])
  })

  test('are called so by ev verify, in text and in JSON', async () => {
    const { ev } = folder()
    const text = await ev('verify', '--sandbox', 'valid@x.example')
    expect(text.stdout).toMatch(/^✔ valid@x\.example is deliverable \(SIMULATED\)\n/)
    const json = await ev('verify', '--sandbox', '--json', 'valid@x.example')
    expect(JSON.parse(json.stdout)).toMatchObject({ class: 'deliverable', sandbox: true })
  })
})

describe.concurrent('the columns of the output', () => {
  test('start with the class, and leave valid empty where the class is unknown', async () => {
    const { write, read, bulk, rows } = folder()
    write('list.csv', 'email\nvalid1@x.example\ninvalid1@x.example\ntimeout1@x.example\n')
    await bulk('--sandbox')
    expect(read('list.verified.csv').toString()).toMatch(/^email,ev_class,/)
    expect(rows('list.verified.csv').map(row => [row.ev_class, row.ev_valid])).toEqual([
      ['deliverable', 'true'],
      ['undeliverable', 'false'],
      ['unknown', ''],
    ])
  })

  test('have the canonical address, by which --deduplicate can compare', async () => {
    const { write, bulk, rows } = folder()
    const list = [
      'email',
      'valid.ann@gmail.com',
      'validann+news@googlemail.com',
      'validann@gmail.com',
      'valid.ann@x.example',
      'validann@x.example',
      'nonsense',
    ]
    write('list.csv', list.join('\n'))
    await bulk('--sandbox')
    expect(rows('list.verified.csv').map(row => row.ev_canonical)).toEqual([
      ...Array(3).fill('validann@gmail.com'),
      'valid.ann@x.example',
      'validann@x.example',
      '',
    ])
    await bulk('--sandbox', '-o', 'mailboxes.csv', '--deduplicate', 'canonical')
    expect(rows('mailboxes.csv').map(row => row.email)).toEqual([
      'valid.ann@gmail.com',
      'valid.ann@x.example',
      'validann@x.example',
      'nonsense',
    ])
    await bulk('--sandbox', '-o', 'addresses.csv', '--deduplicate')
    expect(rows('addresses.csv')).toHaveLength(6)
  })
})

// Two networks in which the same domain has different mailboxes.
describe('a list in two networks', { timeout: 60_000 }, () => {
  let networks: Simulator[]
  beforeAll(async () => {
    networks = await Promise.all([
      startSimulator(network('550 5.1.1 不存在的用户')),
      startSimulator(network('250 2.1.5 Ok')),
    ])
  })
  afterAll(async () => {
    for (const one of networks) await one.close()
  })

  test('has the results of its own network, not the cached ones of another', async () => {
    const { write, bulk, rows } = folder()
    write('list.csv', 'email\nann@provider.test\n')
    const classes: string[] = []
    for (const one of [...networks, ...networks]) {
      expect((await bulk(...simulatorFlags(one as Simulator), '--fresh')).code).toBe(0)
      const [row] = rows('list.verified.csv')
      classes.push(`${row?.ev_class} ${row?.ev_cached}`)
    }
    expect(classes).toEqual([
      'undeliverable false',
      'deliverable false',
      'undeliverable false',
      'deliverable false',
    ])
  })

  test('has cached results where the network is the same', async () => {
    const { write, bulk, rows } = folder()
    write('list.csv', 'email\nann@provider.test\n')
    for (const cached of ['false', 'true']) {
      await bulk(...simulatorFlags(networks[1] as Simulator))
      expect(rows('list.verified.csv')).toMatchObject([{ ev_cached: cached }])
    }
  })

  test('is UTF-8 with a byte order mark if a reply has a letter that its encoding lacks', async () => {
    const { write, read, bulk } = folder()
    write('list.csv', Buffer.from('name,email\nFran\xe7ois,ann@provider.test\n', 'latin1'))
    const { stderr } = await bulk(...simulatorFlags(networks[0] as Simulator))
    const text = read('list.verified.csv').toString()
    expect(text).toMatch(/^\uFEFFname,email,ev_class,/)
    expect(rowsOf(text.slice(1))).toMatchObject([
      { name: 'François', ev_smtp_text: expect.stringContaining('不存在的用户') },
    ])
    expect(stderr).toContain('The output is in UTF-8; the list is in windows-1252.')
  })

  const network = (reply: string) => ({
    domains: { 'provider.test': { mx: [[10, 'mx.provider.test']] as [number, string][] } },
    hosts: {
      'mx.provider.test': {
        behavior: 'polite' as const,
        rules: [
          { on: 'RCPT' as const, to: 'ann@provider.test', reply },
          { on: 'RCPT' as const, reply: '550 5.1.1 No such user' },
        ],
      },
    },
  })
})
