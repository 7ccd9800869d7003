import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants } from 'node:zlib'
import { type Context, Hono } from 'hono'
import { etag } from 'hono/etag'
import type { Env } from './deps.ts'
import { joinStyles, STYLE } from './join-styles.ts'

/**
 * Returns the URL path of a file of `browser/` or a library; it changes when any content changes.
 */
export function assetPath(name: string): string {
  return `/assets/${FILES.version}/${name}`
}

/**
 * Serves scripts, styles and icons, which pages load from no other origin, and the script for forms,
 * which pages of other sites load.
 */
export function assetRoutes(): Hono<Env> {
  const compressed = new Map<string, Promise<Buffer>>()
  const send = async (c: Context<Env>, name: string, caching: string) => {
    const bytes = FILES.contents.get(name)
    if (bytes === undefined) return c.notFound()
    c.header('Cache-Control', `public, ${caching}`)
    c.header('Content-Type', TYPES[extname(name)])
    c.header('Vary', 'Accept-Encoding')
    if (!/\bbr\b/.test(c.req.header('Accept-Encoding') ?? '')) return c.body(bytes)
    const compressing = compressed.get(name) ?? compress(bytes)
    compressed.set(name, compressing)
    c.header('Content-Encoding', 'br')
    return c.body(new Uint8Array(await compressing))
  }
  return new Hono<Env>()
    .get(ASSETS, c => send(c, c.req.param('name'), 'max-age=31536000, immutable'))
    .get(FORM_SCRIPT, etag(), c => {
      c.header('Cross-Origin-Resource-Policy', 'cross-origin')
      return send(c, 'form.js', FORM_SCRIPT_CACHING)
    })
}

export const ASSETS = '/assets/:version/:name'

/** The script that other sites load. Its path never changes. */
export const FORM_SCRIPT = '/form.js'

/** A new version reaches all pages within a day; until then most pages load it from their cache. */
const FORM_SCRIPT_CACHING = 'max-age=86400, stale-while-revalidate=604800'

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
}

/** The folder to which the build writes the files of libraries and the index of the documentation. */
const VENDOR = join(import.meta.dirname, '../../dist/vendor')
const LIBRARY_FILES = ['htmx.js', 'uplot.js', 'uplot.css', 'minisearch.js', 'docs-search.json']

type Files = {
  readonly version: string
  readonly contents: ReadonlyMap<string, Uint8Array<ArrayBuffer>>
}

/** Read once at startup: about 0.7 MB. */
const FILES = readFiles()

function readFiles(): Files {
  const folder = join(import.meta.dirname, 'browser')
  const contents = new Map<string, Uint8Array<ArrayBuffer>>()
  for (const name of readdirSync(folder)
    .filter(name => extname(name) in TYPES && extname(name) !== '.json')
    .toSorted()) {
    contents.set(name, new Uint8Array(readFileSync(join(folder, name))))
  }
  // The build has written it.
  if (!contents.has(STYLE)) contents.set(STYLE, new Uint8Array(joinStyles(folder)))
  for (const name of LIBRARY_FILES) {
    contents.set(name, new Uint8Array(readFileSync(join(VENDOR, name))))
  }
  const hash = createHash('sha256')
  for (const [name, bytes] of contents) hash.update(name).update(bytes)
  return { version: hash.digest('hex').slice(0, 12), contents }
}

const brotli = promisify(brotliCompress)
/** Quality 11 takes five times as long for 2 % less. */
const compress = (bytes: Uint8Array) =>
  brotli(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } })
