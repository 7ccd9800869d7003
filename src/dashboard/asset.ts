import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, extname, join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants } from 'node:zlib'
import { Hono } from 'hono'
import type { Env } from './deps.ts'

/** Where a page finds a file of `browser/`, or of the libraries; another content has another address. */
export function assetPath(name: string): string {
  return `/assets/${FILES.version}/${name}`
}

/** Files for browsers: from here and from nowhere else. */
export function assetRoutes(): Hono<Env> {
  const compressed = new Map<string, Promise<Buffer>>()
  return new Hono<Env>().get('/assets/:version/:name', async c => {
    const { name } = c.req.param()
    const bytes = FILES.contents.get(name)
    if (bytes === undefined) return c.notFound()
    c.header('Cache-Control', 'public, max-age=31536000, immutable')
    c.header('Content-Type', TYPES[extname(name)])
    c.header('Vary', 'Accept-Encoding')
    if (!/\bbr\b/.test(c.req.header('Accept-Encoding') ?? '')) return c.body(bytes)
    const small = compressed.get(name) ?? compress(bytes)
    compressed.set(name, small)
    c.header('Content-Encoding', 'br')
    return c.body(new Uint8Array(await small))
  })
}

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** Of libraries: what they are called here, and where they are. */
const BORROWED = {
  'htmx.js': ['htmx.org', 'dist/htmx.min.js'],
  'uplot.js': ['uplot', 'dist/uPlot.iife.min.js'],
  'uplot.css': ['uplot', 'dist/uPlot.min.css'],
} as const

type Files = {
  readonly version: string
  readonly contents: ReadonlyMap<string, Uint8Array<ArrayBuffer>>
}

/** Read once: they are two hundred kilobytes. */
const FILES = readFiles()

function readFiles(): Files {
  const own = join(import.meta.dirname, 'browser')
  const contents = new Map<string, Uint8Array<ArrayBuffer>>()
  for (const name of readdirSync(own)
    .filter(name => extname(name) in TYPES)
    .toSorted()) {
    contents.set(name, new Uint8Array(readFileSync(join(own, name))))
  }
  for (const [name, [library, path]] of Object.entries(BORROWED)) {
    contents.set(name, new Uint8Array(readFileSync(join(folderOf(library), path))))
  }
  const hash = createHash('sha256')
  for (const [name, bytes] of contents) hash.update(name).update(bytes)
  return { version: hash.digest('hex').slice(0, 12), contents }
}

/** Libraries need not export their package.json; where their main file is, is known. */
function folderOf(library: string): string {
  let folder = dirname(createRequire(import.meta.url).resolve(library))
  while (!folder.endsWith(join('node_modules', library))) folder = dirname(folder)
  return folder
}

const brotli = promisify(brotliCompress)
/** The best is 11, and takes five times as long for two per cent less. */
const compress = (bytes: Uint8Array) =>
  brotli(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } })
