import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { EV, emptyFolder, runEv, startEv } from '../support/ev-process.ts'
import { expectSentence } from '../support/home.ts'
import { NODE_VERSIONS } from '../support/node-versions.ts'

// Each test waits for its own process, so the tests run concurrently.
describe.concurrent('output that cannot be written', () => {
  test.runIf(existsSync('/dev/full'))('exits with 73 and a message on a full disk', async () => {
    const stdout = openSync('/dev/full', 'w')
    const args = ['verify', 'valid@x.example', '--sandbox', '--json']
    const ran = await runEv(args, { home: emptyFolder(), stdout })
    expect(ran.code).toBe(73)
    expectSentence(
      ran,
      /^error: The output cannot be written: no space left on device.* Write it to another place/,
    )
  })

  test('exits with 74 and no message when the reader closes the pipe', () => {
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
  const old = NODE_VERSIONS.find(({ version }) => version.startsWith('v20.'))?.path

  test.skipIf(old === undefined)('on an old Node starts the bundled one', async () => {
    const home = emptyFolder()
    const args = ['verify', 'valid@x.example', 'invalid@x.example', '--sandbox', '--ndjson']
    const ran = await runEv(args, { home, node: old as string })
    expect(ran).toMatchObject({ code: 1, stderr: '' })
    expect(ran.stdout.split('\n')).toHaveLength(3)
  })

  test.skipIf(old === undefined)(
    'on an old Node without a bundled one exits with 70 and names the version',
    () => {
      const { launcher, dist } = launcherWithoutDist()
      mkdirSync(dist, { recursive: true })
      writeFileSync(join(dist, 'main.js'), '')
      const { status, stderr } = spawnSync(old as string, [launcher], { encoding: 'utf8' })
      expect(status).toBe(70)
      expect(stderr).toMatch(
        /^error: ev needs Node 22\.19 or newer; this is \d.* Install a newer Node\.\n$/,
      )
    },
  )

  test.skipIf(old === undefined)('on an old Node forwards the signal that stops it', async () => {
    const running = startEv(['verify', '-', '--sandbox', '--ndjson'], {
      home: emptyFolder(),
      node: old as string,
      stdin: 'valid@x.example\n',
      stdinOpen: true,
    })
    await running.printed('valid@x.example')
    running.child.kill('SIGINT')
    expect(await running.ended).toMatchObject({ code: 130, signal: null, stderr: '' })
  })

  test('without dist/ exits with 70 and prints how to build it', () => {
    const { launcher } = launcherWithoutDist()
    const { status, stderr } = spawnSync(process.execPath, [launcher], { encoding: 'utf8' })
    expect({ status, stderr }).toEqual({
      status: 70,
      stderr: 'error: ev is not built. Run: npm ci\n',
    })
  })
})

function launcherWithoutDist() {
  const root = emptyFolder()
  mkdirSync(join(root, 'bin'))
  writeFileSync(join(root, 'package.json'), '{"type":"module"}')
  const launcher = join(root, 'bin/ev.js')
  copyFileSync(EV, launcher)
  return { launcher, dist: join(root, 'dist/program') }
}
