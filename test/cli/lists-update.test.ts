import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type CliOptions, emptyFolder, runEv } from '../support/cli.ts'
import { fakeClock } from '../support/clock.ts'
import { zone } from '../support/zone.ts'

const HTML = '<!doctype html>\n<html>\n<title>Not found</title>\n<p>Nothing is here.</p>\n</html>\n'

/** Responses by path; a number is a status code. */
const BODIES: Readonly<Record<string, string | number>> = {
  '/domains.txt': '# from the web\nMail.Example\r\n*.trash.example\n\nmüller.example\n',
  '/domains.json': '["json.example", "mail.example"]',
  '/slip.txt': `${Array.from({ length: 40 }, (_, index) => `d${index}.example`).join('\n')}\ncom\n`,
  '/page.html': HTML,
  '/empty.txt': '# nothing yet\n',
  '/gone.txt': 404,
}

let origin = ''
let requests: string[] = []
const answer: RequestListener = (request, response) => {
  const path = request.url ?? ''
  requests.push(path)
  if (path === '/moved') response.writeHead(302, { location: '/domains.json' }).end()
  else if (path === '/loop') response.writeHead(302, { location: '/loop' }).end()
  else if (path === '/inside') response.writeHead(302, { location: 'http://10.0.0.7/' }).end()
  else if (path === '/file') response.writeHead(302, { location: 'file:///etc/passwd' }).end()
  else if (path === '/endless') sendEndlessly(response)
  else if (path === '/silent') return
  else {
    const body = BODIES[path] ?? 404
    response.writeHead(typeof body === 'number' ? body : 200).end(String(body))
  }
}

/** Sends until the client closes the connection. */
function sendEndlessly(response: Parameters<RequestListener>[1]): void {
  const chunk = Buffer.alloc(1024 * 1024, 'a.example\n')
  const send = () => {
    while (!response.destroyed && response.write(chunk));
  }
  response.on('drain', send)
  send()
}

const server = createServer(answer)
beforeAll(async () => {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

type Home = Pick<CliOptions, 'home' | 'context'> & { readonly args?: readonly string[] }

const update = (sources: readonly string[], { home, args = [], context = {} }: Home) =>
  runEv(
    [
      ...['lists', 'update', 'disposable', ...sources, '--disposable-file', 'list.txt'],
      ...['--allow-ranges', '127.0.0.0/8', ...args],
    ],
    { home, context },
  )

const entriesOf = (home: string) =>
  readFileSync(join(home, 'list.txt'), 'utf8')
    .split('\n')
    .filter(line => line !== '' && !line.startsWith('#'))

const filesIn = (home: string) =>
  readdirSync(home)
    .filter(name => name !== 'data')
    .toSorted()

describe('ev lists update', () => {
  test('writes the entries of files and URLs without duplicates, and prints what changed', async () => {
    const home = emptyFolder()
    writeFileSync(join(home, 'ours.txt'), 'ours.example   # a partner\nmail.example\n')
    const sources = ['ours.txt', `${origin}/domains.txt`, `${origin}/moved`]
    const { code, stdout, stderr } = await update(sources, { home, args: ['--json'] })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(JSON.parse(stdout)).toMatchObject({
      list: 'disposable',
      written: true,
      entries: 5,
      added: 5,
      removed: 0,
      sources: [{ source: 'ours.txt', entries: 2 }, { entries: 3 }, { entries: 2 }],
    })
    expect(entriesOf(home)).toEqual([
      ...['json.example', 'mail.example', 'ours.example', 'trash.example'],
      'xn--mller-kva.example',
    ])
    const again = await update([`${origin}/domains.json`], { home })
    expect(again.stdout).toContain('has 2 entries: 0 added, 3 removed.')
    expect(entriesOf(home)).toEqual(['json.example', 'mail.example'])
    expect(filesIn(home)).toEqual(['list.txt', 'ours.txt'])
  })

  test('writes a file that ev can read', async () => {
    const home = emptyFolder()
    await update([`${origin}/domains.txt`], { home })
    const ran = await runEv(
      ['verify', 'ann@a.trash.example', '--json', '--disposable-file', 'list.txt'],
      {
        home,
        context: {
          externalDeps: {
            resolver: zone({ 'a.trash.example': { MX: [[10, 'mx.trash.example']] } }),
          },
        },
        environment: { EV_SPECIAL_DOMAINS: 'on' },
      },
    )
    expect(JSON.parse(ran.stdout).reason).toBe('disposable_email')
  })

  test('connects only to addresses that passed the policy', async () => {
    const { port } = new URL(origin)
    const home = emptyFolder()
    const at = (ip: string) => ({ externalDeps: { resolver: zone({ 'lists.test': { A: [ip] } }) } })
    const source = `http://lists.test:${port}/domains.json`
    expect((await update([source], { home, context: at('127.0.0.1') })).code).toBe(0)
    expect(entriesOf(home)).toEqual(['json.example', 'mail.example'])
    const inside = await update([source], { home, context: at('10.0.0.7') })
    expect(inside.stderr).toContain('The name lists.test has an address that is not public')
  })

  test('skips a few invalid lines and names the first', async () => {
    const { code, stdout } = await update([`${origin}/slip.txt`], { home: emptyFolder() })
    expect(code).toBe(0)
    expect(stdout).toMatch(/slip\.txt: 40 entries; left out 1, first "com" on line 41\./)
  })

  test('prints what would change with --dry-run, and writes nothing', async () => {
    const home = emptyFolder()
    const { stdout } = await update([`${origin}/domains.json`], { home, args: ['--dry-run'] })
    expect(stdout).toContain('would have 2 entries: 2 added')
    expect(filesIn(home)).toEqual([])
  })

  test('keeps a symbolic link to the list', async () => {
    const home = emptyFolder()
    mkdirSync(join(home, 'lists'))
    writeFileSync(join(home, 'source.txt'), 'a.example\n')
    await update(['source.txt'], { home, args: ['--disposable-file', 'lists/list.txt'] })
    symlinkSync('lists/list.txt', join(home, 'list.txt'))
    expect((await update([`${origin}/domains.json`], { home })).code).toBe(0)
    expect(lstatSync(join(home, 'list.txt')).isSymbolicLink()).toBe(true)
    expect(entriesOf(home)).toEqual(['json.example', 'mail.example'])
  })
})

describe('ev lists update changes nothing', () => {
  const before = ['a.example', 'b.example']

  async function refused(sources: readonly string[], args: readonly string[] = []) {
    const home = emptyFolder()
    writeFileSync(join(home, 'before.txt'), before.join('\n'))
    await update(['before.txt'], { home })
    const ran = await update(sources, { home, args })
    expect(entriesOf(home)).toEqual(before)
    expect(filesIn(home)).toEqual(['before.txt', 'list.txt'])
    return ran
  }

  test.each([
    [74, '/gone.txt', 'the server responded with 404'],
    [65, '/page.html', 'is not a list of this kind: it has "<!doctype html>" on line 1.'],
    [65, '/empty.txt', 'is empty'],
    [74, '/loop', 'it redirects more than 5 times'],
    [74, '/inside', 'The address 10.0.0.7 is not public'],
    [74, '/file', 'it redirects to file:, not to HTTP'],
    [74, '/endless', 'it is larger than 32 MiB'],
  ])('and exits with %i if a source is %s', async (code, path, sentence) => {
    const ran = await refused([`${origin}/domains.txt`, `${origin}${path}`])
    expect(ran.stderr).toContain(sentence)
    expect(ran.stderr).toContain('Nothing was changed.')
    expect(ran.code).toBe(code)
  })

  test('if the address of a source is neither public nor allowed', async () => {
    requests = []
    const ran = await refused([`${origin}/domains.txt`], ['--allow-ranges', '192.0.2.0/24'])
    expect(ran.stderr).toMatch(/127\.0\.0\.1 is not public.*allow it with --allow-ranges/)
    expect(ran.code).toBe(74)
    expect(requests).toEqual([])
  })

  test('if a source is not a URL', async () => {
    const ran = await refused(['https://['])
    expect(ran.stderr).toMatch(/https:\/\/\[ cannot be read: invalid url\..*Nothing was changed/is)
    expect(ran.code).toBe(74)
  })

  test('if a source file does not exist', async () => {
    const ran = await refused(['nowhere.txt'])
    expect(ran.stderr).toContain('The source nowhere.txt cannot be read')
    expect(ran.code).toBe(66)
  })

  test('if ev did not write the file', async () => {
    const home = emptyFolder()
    writeFileSync(join(home, 'list.txt'), 'mine.example\n')
    requests = []
    const ran = await update([`${origin}/domains.txt`], { home })
    expect(ran.stderr).toContain('was not written by "ev lists update" and is not overwritten')
    expect(ran.code).toBe(73)
    expect([entriesOf(home), requests]).toEqual([['mine.example'], []])
  })

  test('if no file is configured', async () => {
    const home = emptyFolder()
    const ran = await runEv(['lists', 'update', 'spam-trap', `${origin}/domains.txt`], { home })
    expect(ran.stderr).toContain('Name the file to write with --spam-trap-file')
    expect([ran.code, existsSync(join(home, 'list.txt'))]).toEqual([64, false])
  })

  test('if a server does not respond in time', async () => {
    const clock = fakeClock()
    const home = emptyFolder()
    const running = runEv(
      [
        ...['lists', 'update', 'disposable', `${origin}/silent`, '--disposable-file', 'list.txt'],
        ...['--allow-ranges', '127.0.0.0/8'],
      ],
      { home, context: { clock } },
    )
    await expect.poll(() => requests.at(-1)).toBe('/silent')
    clock.advance(60_000)
    const ran = await running
    expect(ran.stderr).toContain('the download took longer than 1 min')
    expect(ran.code).toBe(74)
  })
})
