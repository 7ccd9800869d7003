// Verifies the addresses of forms on other websites:
//
//   <script src="https://ev.example/form.js" data-key="ev_pub_…" defer></script>
//   <input type="email" data-ev>
//
// It never delays a form: a request that fails or takes too long changes nothing.
;(() => {
  const script = /** @type {HTMLScriptElement | null} */ (
    document.currentScript ?? document.querySelector('script[data-key^="ev_pub_"]')
  )
  const { key, sandbox } = script?.dataset ?? {}
  const loaded = Symbol.for('ev.form')
  if (!script || !key || loaded in window) return
  Object.defineProperty(window, loaded, { value: true })

  const FIELDS = 'input[data-ev]'
  /** Slightly longer than the deadline of the service. */
  const TIMEOUT_MS = 8_000
  const url = new URL('v1/verify/form', script.src)

  /**
   * @typedef {object} Answer
   * @property {'deliverable' | 'risky' | 'undeliverable' | 'unknown'} class
   * @property {boolean} allow
   * @property {string | null} did_you_mean
   * @property {string} message
   *
   * @typedef {object} State
   * @property {HTMLElement} message
   * @property {string} asked The last address that was sent; empty if none.
   * @property {AbortController | null} request
   * @property {string} fault The validity message that this script has set; empty if none.
   * @property {boolean} isMarked Whether this script has set `aria-invalid`.
   */
  /** @type {WeakMap<HTMLInputElement, State>} */
  const states = new WeakMap()
  let messages = 0

  /** @param {HTMLInputElement} field */
  function stateOf(field) {
    const known = states.get(field)
    if (known?.message.isConnected) return known
    const message = document.getElementById(field.dataset.evMessage ?? '') ?? newMessage(field)
    // Screen readers announce only changes of an element that exists.
    message.setAttribute('aria-live', 'polite')
    const described = new Set(field.getAttribute('aria-describedby')?.split(/\s+/))
    if (known) described.delete(known.message.id)
    field.setAttribute('aria-describedby', [...described.add(message.id)].join(' '))
    /** @type {State} */
    const state = { message, asked: '', request: null, fault: '', isMarked: false }
    states.set(field, state)
    return state
  }

  /** @param {HTMLInputElement} field */
  function newMessage(field) {
    const message = document.createElement('span')
    message.className = 'ev-message'
    message.id = `ev-message-${++messages}`
    field.after(message)
    return message
  }

  /** Removes what an earlier answer has set. @param {HTMLInputElement} field */
  function reset(field) {
    const state = stateOf(field)
    state.request?.abort()
    state.request = null
    state.asked = ''
    state.message.replaceChildren()
    delete state.message.dataset.class
    if (state.isMarked) field.removeAttribute('aria-invalid')
    if (state.fault && field.validationMessage === state.fault) field.setCustomValidity('')
    state.fault = ''
    state.isMarked = false
  }

  /** @param {HTMLInputElement} field */
  async function check(field) {
    const email = field.value.trim()
    const state = stateOf(field)
    if (email === state.asked) return
    reset(field)
    if (!email) return
    const request = new AbortController()
    Object.assign(state, { asked: email, request })
    const answer = await ask(email, request)
    if (state.request !== request) return
    state.request = null
    // The same address is sent again when the visitor leaves the field again.
    if (!answer) state.asked = ''
    else if (notify(field, answer)) show(field, state, answer)
  }

  /**
   * Returns null if there is no answer.
   * @param {string} email
   * @param {AbortController} request
   * @returns {Promise<Answer | null>}
   */
  async function ask(email, request) {
    const timer = setTimeout(() => request.abort(), TIMEOUT_MS)
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: {
          Authorization: `Bearer ${key}`,
          'Content-Type': 'application/json',
          ...(sandbox !== undefined && { 'X-EV-Sandbox': 'true' }),
        },
        body: JSON.stringify({ email }),
        credentials: 'omit',
        signal: request.signal,
      })
      return response.ok ? await response.json() : null
    } catch {
      return null
    } finally {
      clearTimeout(timer)
    }
  }

  /**
   * Returns whether to show the answer: a listener can prevent it.
   * @param {HTMLInputElement} field
   * @param {Answer} detail
   */
  const notify = (field, detail) =>
    field.dispatchEvent(new CustomEvent('ev:result', { bubbles: true, cancelable: true, detail }))

  /**
   * @param {HTMLInputElement} field
   * @param {State} state
   * @param {Answer} answer
   */
  function show(field, state, answer) {
    const { dataset } = field
    const { allow, did_you_mean: suggestion } = answer
    state.message.dataset.class = answer.class
    if (suggestion) showSuggestion(field, state, suggestion)
    else if (!allow) state.message.textContent = dataset.evUndeliverable ?? answer.message
    if (allow) return
    field.setAttribute('aria-invalid', 'true')
    state.isMarked = true
    if (dataset.ev !== 'block' || field.validationMessage) return
    state.fault = state.message.textContent ?? answer.message
    field.setCustomValidity(state.fault)
  }

  /**
   * @param {HTMLInputElement} field
   * @param {State} state
   * @param {string} suggestion
   */
  function showSuggestion(field, { message }, suggestion) {
    const button = document.createElement('button')
    button.type = 'button'
    button.className = 'ev-suggestion'
    button.textContent = suggestion
    button.addEventListener('click', () => accept(field, suggestion))
    const [before, after = ''] = (field.dataset.evSuggest ?? 'Did you mean {email}?').split(
      '{email}',
    )
    message.replaceChildren(before ?? '', button, after)
  }

  /**
   * Sets the value as a visitor does, so that frameworks notice it.
   * @param {HTMLInputElement} field
   * @param {string} value
   */
  function accept(field, value) {
    const { set } = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value') ?? {}
    set?.call(field, value)
    field.focus()
    for (const type of ['input', 'change']) field.dispatchEvent(new Event(type, { bubbles: true }))
  }

  /** @type {[string, (field: HTMLInputElement) => unknown][]} */
  const listeners = [
    ['focusin', stateOf],
    ['input', reset],
    // Browsers that fill in a form send no `focusout`.
    ['change', check],
    ['focusout', check],
  ]
  for (const [type, listener] of listeners) {
    document.addEventListener(type, ({ target }) => {
      if (target instanceof HTMLInputElement && target.matches(FIELDS)) listener(target)
    })
  }
})()
