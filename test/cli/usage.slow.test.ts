import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { EV, emptyFolder, type Ran, runEv, startEv } from '../support/ev-process.ts'

/** What people see of a fault: sentences, no stack, nothing on stdout. */
function expectSentence({ stdout, stderr }: Ran, about: RegExp): void {
  expect(stderr).toMatch(about)
  expect(stderr).not.toMatch(/^ +at /m)
  expect(stdout).toBe('')
}

// Each test waits for a process of its own, so they run side by side.
describe.concurrent('output that nobody takes', () => {
  test.runIf(existsSync('/dev/full'))('a full disk ends with 73 and a sentence', async () => {
    const stdout = openSync('/dev/full', 'w')
    const args = ['verify', 'valid@x.example', '--sandbox', '--json']
    const ran = await runEv(args, { home: emptyFolder(), stdout })
    expect(ran.code).toBe(73)
    expectSentence(ran, /^ev: The output cannot be written: ENOSPC.* Write it elsewhere/)
  })

  test('a reader that leaves is no crash: ev ends with 74, without a word', () => {
    const home = emptyFolder()
    const addresses = Array.from({ length: 3_000 }, (_, n) => `valid${n}@x.example`).join('\n')
    const { stdout, stderr } = spawnSync(
      'bash',
      [
        '-c',
        `"$0" "$1" verify --sandbox --ndjson - | head -1; echo "$PIPESTATUS"`,
        process.execPath,
        EV,
      ],
      {
        cwd: home,
        env: { PATH: process.env.PATH, HOME: home },
        encoding: 'utf8',
        input: addresses,
      },
    )
    const [line = '', code] = stdout.split('\n')
    expect(JSON.parse(line)).toMatchObject({ email: 'valid0@x.example' })
    expect({ code, stderr }).toEqual({ code: '74', stderr: '' })
  })
})

describe.concurrent('the launcher', () => {
  const old = ['/usr/bin/node', '/usr/local/bin/node'].find(path => majorOf(path) < 22)

  test.skipIf(old === undefined)(
    'on an old Node starts the new one that came with the package',
    async () => {
      const home = emptyFolder()
      const args = ['verify', 'valid@x.example', 'invalid@x.example', '--sandbox', '--ndjson']
      const ran = await runEv(args, { home, node: old as string })
      expect(ran).toMatchObject({ code: 1, stderr: '' })
      expect(ran.stdout.split('\n')).toHaveLength(3)
    },
  )

  test.skipIf(old === undefined)(
    'on an old Node without a new one says what is missing, with 70',
    () => {
      const { launcher, dist } = lonelyLauncher()
      mkdirSync(dist, { recursive: true })
      writeFileSync(join(dist, 'main.js'), '')
      const { status, stderr } = spawnSync(old as string, [launcher], { encoding: 'utf8' })
      expect(status).toBe(70)
      expect(stderr).toMatch(
        /^ev: ev needs Node 22\.19 or newer; this is \d.* Install a newer Node\.\n$/,
      )
    },
  )

  test.skipIf(old === undefined)('on an old Node hands on the signal that stops it', async () => {
    const running = startEv(['verify', '-', '--sandbox', '--ndjson'], {
      ...{ home: emptyFolder(), node: old as string },
      ...{ stdin: 'valid@x.example\n', stdinOpen: true },
    })
    await running.printed('valid@x.example')
    running.child.kill('SIGINT')
    expect(await running.ended).toMatchObject({ code: 130, signal: null, stderr: '' })
  })

  test('without dist/ says how to build it, with 70', () => {
    const { launcher } = lonelyLauncher()
    const { status, stderr } = spawnSync(process.execPath, [launcher], { encoding: 'utf8' })
    expect({ status, stderr }).toEqual({
      status: 70,
      stderr: 'ev: ev is not built. Run: npm ci\n',
    })
  })
})

function lonelyLauncher() {
  const root = emptyFolder()
  mkdirSync(join(root, 'bin'))
  writeFileSync(join(root, 'package.json'), '{"type":"module"}')
  const launcher = join(root, 'bin/ev.js')
  copyFileSync(EV, launcher)
  return { launcher, dist: join(root, 'dist/cli') }
}

function majorOf(node: string): number {
  if (!existsSync(node)) return Number.POSITIVE_INFINITY
  const { stdout } = spawnSync(node, ['--version'], { encoding: 'utf8' })
  return Number(/^v(\d+)/.exec(stdout)?.[1] ?? Number.POSITIVE_INFINITY)
}
