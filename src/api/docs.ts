import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { newRouter } from './router.ts'
import type { Service } from './service.ts'

/** The description of all paths for people: Swagger UI, from here and from nowhere else. */
export function docsRoutes({ settings }: Pick<Service, 'settings'>) {
  const read = fileReader()
  const policy = pagePolicy(settings.baseUrl)
  return newRouter()
    .get('/docs', c => {
      c.header('Content-Security-Policy', policy)
      return c.html(PAGE)
    })
    .get('/docs/start.js', c => c.body(START, 200, { 'Content-Type': 'text/javascript' }))
    .get('/docs/:file', async c => {
      const type = FILES.get(c.req.param('file'))
      if (type === undefined) return c.notFound()
      c.header('Cache-Control', 'public, max-age=3600')
      return c.body(await read(c.req.param('file')), 200, { 'Content-Type': type })
    })
}

/** What the page needs of swagger-ui-dist. */
const FILES: ReadonlyMap<string, string> = new Map([
  ['swagger-ui-bundle.js', 'text/javascript'],
  ['swagger-ui.css', 'text/css'],
  ['favicon-32x32.png', 'image/png'],
])

/**
 * Nothing from elsewhere and no script in the page; Swagger UI sets styles on elements and has pictures in its CSS.
 * It asks the address that the description names, which need not be the one by which the page was opened.
 */
const pagePolicy = (baseUrl: string) =>
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self' data:",
    `connect-src 'self' ${URL.parse(baseUrl)?.origin ?? ''}`.trim(),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>ev: the API</title>
<link rel="icon" href="/docs/favicon-32x32.png">
<link rel="stylesheet" href="/docs/swagger-ui.css">
</head>
<body>
<div id="page"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
`

const START = `SwaggerUIBundle({ url: '/openapi.json', dom_id: '#page', deepLinking: true, validatorUrl: null })
`

/** Files are read once. */
function fileReader(): (name: string) => Promise<Uint8Array<ArrayBuffer>> {
  const folder = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'))
  const known = new Map<string, Promise<Uint8Array<ArrayBuffer>>>()
  return name => {
    const file =
      known.get(name) ?? readFile(join(folder, name)).then(bytes => new Uint8Array(bytes))
    known.set(name, file)
    return file
  }
}
