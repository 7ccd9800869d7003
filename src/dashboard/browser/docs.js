// Renders the API reference with Swagger UI.

import { loadScript } from './app.js'

const reference = /** @type {HTMLElement} */ (document.querySelector('#reference'))

/** Swagger UI has its own class for dark colors. */
const system = matchMedia('(prefers-color-scheme: dark)')
function setTheme() {
  const { theme } = document.documentElement.dataset
  const isDark = theme === 'dark' || (theme === 'auto' && system.matches)
  document.documentElement.classList.toggle('dark-mode', isDark)
}
system.addEventListener('change', setTheme)
setTheme()

await loadScript('./swagger-ui-bundle.js')
const { SwaggerUIBundle } = /** @type {any} */ (globalThis)
SwaggerUIBundle({
  ...{ url: reference.dataset.document, domNode: reference },
  ...{ deepLinking: true, validatorUrl: null },
})
