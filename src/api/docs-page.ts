import { readFile } from 'node:fs/promises'
import { vendorFile } from '../platform/vendor.ts'
import { newRouter } from './router.ts'
import type { Service } from './service.ts'

/** Serves Swagger UI, with all files from this host. */
export function docsRoutes({ settings }: Pick<Service, 'settings'>) {
  const read = fileReader()
  const policy = pagePolicy(settings.baseUrl)
  return newRouter()
    .get('/docs', c => {
      c.header('Content-Security-Policy', policy)
      return c.html(PAGE)
    })
    .get('/docs/start.js', c => c.body(START, 200, { 'Content-Type': 'text/javascript' }))
    .get('/docs/style.css', c => c.body(STYLE, 200, { 'Content-Type': 'text/css' }))
    .get('/docs/:file', async c => {
      const type = FILES.get(c.req.param('file'))
      if (type === undefined) return c.notFound()
      c.header('Cache-Control', 'public, max-age=3600')
      return c.body(await read(c.req.param('file')), 200, { 'Content-Type': type })
    })
}

/** Files of Swagger UI that the page loads. */
const FILES: ReadonlyMap<string, string> = new Map([
  ['swagger-ui-bundle.js', 'text/javascript'],
  ['swagger-ui.css', 'text/css'],
  ['favicon-32x32.png', 'image/png'],
])

/**
 * Allows no third-party content and no inline script. Swagger UI sets styles on elements and has
 * data: images in its CSS. It sends requests to `baseUrl`, which can differ from the origin of the
 * page.
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
<title>API reference · ev</title>
<link rel="icon" href="/docs/favicon-32x32.png">
<link rel="stylesheet" href="/docs/swagger-ui.css">
<link rel="stylesheet" href="/docs/style.css">
</head>
<body>
<header><a href="/">ev</a> API reference</header>
<div id="page"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
`

/** Follows the theme that the dashboard stores in a cookie; otherwise that of the system. */
const START = `const system = matchMedia('(prefers-color-scheme: dark)')
const chosen = /(?:^|; )ev_theme=(light|dark)/.exec(document.cookie)?.[1]
const setTheme = () =>
  document.documentElement.classList.toggle('dark-mode', chosen ? chosen === 'dark' : system.matches)
system.addEventListener('change', setTheme)
setTheme()
SwaggerUIBundle({ url: '/openapi.json', dom_id: '#page', deepLinking: true, validatorUrl: null })
`

/** The colors and the type of the dashboard. */
const STYLE = `html { color-scheme: light; --bg: #f6f7f8; --text: #14181d; --line: #e6e8eb; --accent: #0f766e; }
html.dark-mode { color-scheme: dark; --bg: #0d0f12; --text: #eceff2; --line: #262b31; --accent: #2dd4bf; }
html, html.dark-mode, html.dark-mode .swagger-ui { background: var(--bg); }
body { margin: 0; color: var(--text); font: 14px/1.45 Inter, ui-sans-serif, system-ui, "Segoe UI", Roboto, sans-serif; }
body > header { padding: 14px 20px; border-bottom: 1px solid var(--line); font-weight: 600; }
body > header a { margin-right: 10px; color: var(--accent); font-weight: 680; text-decoration: none; }
.swagger-ui, .swagger-ui .info .title, .swagger-ui .opblock-tag, .swagger-ui .opblock .opblock-summary-description,
.swagger-ui .btn, .swagger-ui table thead tr th, .swagger-ui label, .swagger-ui .info p, .swagger-ui section h3,
.swagger-ui .renderedMarkdown p, .swagger-ui .tab li, .swagger-ui .opblock-tag small {
  font-family: Inter, ui-sans-serif, system-ui, "Segoe UI", Roboto, sans-serif;
}
.swagger-ui .info { margin: 24px 0; }
.swagger-ui .scheme-container, html.dark-mode .swagger-ui .scheme-container { background: none; box-shadow: none; padding: 0 0 16px; }
.swagger-ui .opblock { border-radius: 10px; box-shadow: none; }
`

/** Caches each file after the first read. */
function fileReader(): (name: string) => Promise<Uint8Array<ArrayBuffer>> {
  const known = new Map<string, Promise<Uint8Array<ArrayBuffer>>>()
  return name => {
    const file = known.get(name) ?? readFile(vendorFile(name)).then(bytes => new Uint8Array(bytes))
    known.set(name, file)
    return file
  }
}
