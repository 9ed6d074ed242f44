/* iframe-worker.js -- the search without a web server: browsers start no worker for a page of file://, so a hidden frame is one.
 *
 * The theme's plugin "offline" wants a script of this name; this one is ours, so that no page loads anything from another host.
 */
if (location.protocol === "file:") {
    window.Worker = class extends EventTarget {
        constructor(url) {
            super();
            const frame = document.createElement("iframe");
            frame.hidden = true;
            document.body.appendChild(frame);
            const inside = frame.contentWindow;
            this.inside = inside;
            inside.document.open();
            inside.document.write(
                "<!doctype html><body><script>" +
                "window.postMessage = data => parent.dispatchEvent(new CustomEvent('frame-worker', {detail: data}));" +
                "window.importScripts = (...urls) => urls.reduce((before, url) => before.then(() => new Promise(done => {" +
                "const script = document.createElement('script');" +
                "script.src = url; script.onload = done; document.body.appendChild(script); })), Promise.resolve());" +
                "<\/script><script src=\"" + new URL(url, location.href) + "\"><\/script></body>");
            inside.document.close();
            this.ready = new Promise(done => { frame.onload = done; });
            window.addEventListener("frame-worker", event =>
                this.dispatchEvent(new MessageEvent("message", {data: event.detail})));
        }
        postMessage(data) {
            this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", {data})));
        }
        terminate() {}
    };
}
