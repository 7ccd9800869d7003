import { existsSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/platform/clock.ts'
import { emptyFolder, runEv } from '../../support/cli.ts'
import type { ReceiverOptions } from '../../support/http-receiver.ts'
import { openReceiver } from '../../support/https-post.ts'
import { openS3, S3_KEYS } from '../../support/s3-server.ts'

const LIST = 'name,email\nAnn,valid1@x.example\nBob,invalid2@x.example\n'
const KEYS = {
  AWS_ACCESS_KEY_ID: S3_KEYS.accessKeyId,
  AWS_SECRET_ACCESS_KEY: S3_KEYS.secretAccessKey,
}

const csv = (body: string) => ({
  body,
  headers: { 'content-length': String(Buffer.byteLength(body)) },
})

/** Starts a server for plain HTTP on loopback and returns the URL of a list. */
async function serve(answer: ReceiverOptions['answer'] = csv(LIST)) {
  const receiver = await openReceiver({ tls: 'none', answer })
  return { receiver, url: `http://127.0.0.1:${receiver.port}/in/march.csv?sig=s3cret` }
}

type Environment = Readonly<Record<string, string>>

function setUp() {
  const home = emptyFolder()
  const ev = (args: readonly string[], environment: Environment = {}) =>
    runEv([...args, '--data-dir', join(home, 'data')], { home, environment })
  const bulk = (args: readonly string[], environment: Environment = {}) =>
    ev(['bulk', '--sandbox', ...args], environment)
  const folder = join(home, 'data/stdin')
  const copies = () => (existsSync(folder) ? readdirSync(folder) : [])
  const read = (name: string) => readFileSync(join(home, name), 'utf8')
  return { home, ev, bulk, copies, read }
}

describe('ev bulk with a URL', () => {
  test('writes the results into the current folder, and keeps no copy', async () => {
    const { bulk, copies, read, home } = setUp()
    const { url } = await serve()
    const { code, stderr } = await bulk([url])
    expect({ code, stderr }).toMatchObject({ code: 0, stderr: /written to .*march\.verified\.csv/ })
    expect(stderr).toContain('Downloading march.csv.')
    expect(stderr).not.toContain('s3cret')
    expect(read('march.verified.csv')).toMatch(
      /^name,email,ev_class,[^\n]*\nAnn,valid1@x\.example,deliverable,/,
    )
    expect(copies()).toEqual([])
    expect(readFileSync(join(home, 'data/ev.sqlite'), 'latin1')).not.toContain('s3cret')
  })

  test('writes to -o, in another format', async () => {
    const { bulk, read } = setUp()
    const { url } = await serve()
    expect((await bulk([url, '-o', 'out.json', '--format', 'json'])).code).toBe(0)
    expect(JSON.parse(read('out.json'))).toHaveLength(2)
  })

  test.runIf(existsSync('/dev/full'))('is resumed by the same command and by its ID', async () => {
    const { home, bulk, ev, copies, read } = setUp()
    const { url } = await serve()
    const output = join(home, 'out.csv')
    symlinkSync('/dev/full', output)
    expect((await bulk([url, '-o', 'out.csv'])).code).not.toBe(0)
    expect(copies()).toHaveLength(1)
    const { stdout } = await ev(['jobs', '--json'])
    expect(stdout).toContain('"march.csv"')
    const again = await bulk([url, '-o', 'out.csv'])
    expect(again.stderr).toMatch(/Resuming this list: 2 of 2 rows are finished/)
    rmSync(output)
    const id = /job_\w{16}/.exec(stdout)?.[0] ?? ''
    expect((await ev(['jobs', 'resume', id])).code).toBe(0)
    expect(read('out.csv')).toContain('Ann,valid1@x.example')
    expect(copies()).toEqual([])
  })

  test('starts over if the file has changed', async () => {
    const { bulk, read } = setUp()
    const { url, receiver } = await serve()
    await bulk([url])
    receiver.answer(csv('email\nvalid3@x.example\n'))
    expect((await bulk([url])).code).toBe(0)
    expect(read('march.verified.csv')).toContain('valid3@x.example')
  })

  test.each<[string, ReceiverOptions['answer'], RegExp]>([
    [
      '404',
      404,
      /^error: The list cannot be fetched from 127\.0\.0\.1:\d+\. .* Check the URL\.\n$/m,
    ],
    ['a body that ends early', { body: LIST, end: 'reset' }, /^error: The list cannot be fetched/m],
    ['a web page', csv('<!doctype html>'), /^error: The list is a web page \(HTML\)/m],
  ])('fails with %s, without output', async (_, answer, message) => {
    const { bulk, home, copies } = setUp()
    const { url } = await serve(answer)
    const { code, stderr } = await bulk([url])
    expect(code).not.toBe(0)
    expect(stderr).toMatch(message)
    expect(stderr).not.toContain('s3cret')
    expect(existsSync(join(home, 'march.verified.csv'))).toBe(false)
    expect(copies().filter(name => name.endsWith('.partial'))).toEqual([])
  })

  test.each([
    ['http://files.example.com/list.csv', /must begin with https/],
    ['ftp://files.example.com/list.csv', /must begin with https/],
    ['file:///etc/passwd', /must begin with https/],
    ['https://ann:s3cret@files.example.com/list.csv', /password/],
    ['s3://lists/march.csv', /needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY/],
  ])('refuses %s', async (url, message) => {
    const { bulk } = setUp()
    const { code, stderr } = await bulk([url])
    expect([code, stderr]).toEqual([64, expect.stringMatching(message)])
    expect(stderr).not.toContain('s3cret')
  })
})

describe('ev bulk with a bucket', () => {
  const objects = { '/lists/2026/march.csv': LIST }

  test('reads the variables of the AWS CLI', async () => {
    const { bulk, read } = setUp()
    const { port } = await openS3({
      clock: systemClock,
      objects,
      tls: 'none',
      region: 'eu-west-1',
      sessionToken: 'token',
    })
    const { code, stderr } = await bulk(['s3://lists/2026/march.csv'], {
      ...KEYS,
      AWS_SESSION_TOKEN: 'token',
      AWS_REGION: 'eu-west-1',
      AWS_ENDPOINT_URL: `http://127.0.0.1:${port}`,
    })
    expect([code, stderr]).toEqual([0, expect.stringContaining('Downloading march.csv.')])
    expect(read('march.verified.csv')).toContain('Ann,valid1@x.example')
  })

  test('prefers AWS_ENDPOINT_URL_S3, and us-east-1 without a region', async () => {
    const { bulk } = setUp()
    const { port } = await openS3({ clock: systemClock, objects, tls: 'none' })
    const environment = {
      ...KEYS,
      AWS_SESSION_TOKEN: '',
      AWS_ENDPOINT_URL: 'https://127.0.0.1:1',
      AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${port}`,
    }
    expect((await bulk(['s3://lists/2026/march.csv'], environment)).code).toBe(0)
    const wrong = { ...environment, AWS_SECRET_ACCESS_KEY: 's3cret' }
    const { code, stderr } = await bulk(['s3://lists/2026/march.csv'], wrong)
    expect([code, stderr]).toEqual([66, expect.stringMatching(/403 SignatureDoesNotMatch/)])
    expect(stderr).not.toMatch(/s3cret|AKIA/)
  })
})
