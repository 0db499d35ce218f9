//! The variables by which programs find a proxy.

use super::Variables;

/// For requests of HTTP and HTTPS.
const HTTP: [&str; 4] = ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY"];

/// For other connections.
const ALL: [&str; 4] = ["all_proxy", "ALL_PROXY", "ftp_proxy", "FTP_PROXY"];

/// Hosts without a proxy.
const EXCEPTIONS: [&str; 2] = ["no_proxy", "NO_PROXY"];

/// Makes Node.js use the variables.
const NODE: &str = "NODE_USE_ENV_PROXY";

/// Sets the variables for a proxy at this port of the loopback address. Without one, removes them: commands reach
/// listed hosts directly, and no proxy outside.
pub(crate) fn set_proxy_variables(environment: &mut Variables, port: Option<u16>) {
    let is_ours =
        |name: &str| HTTP.contains(&name) || ALL.contains(&name) || EXCEPTIONS.contains(&name);
    environment.retain(|(name, _)| name.to_str().is_none_or(|name| !is_ours(name)));
    let Some(port) = port else { return };
    let place = format!("127.0.0.1:{port}");
    let mut set = |name: &str, value: String| environment.push((name.into(), value.into()));
    HTTP.iter().for_each(|name| set(name, format!("http://{place}")));
    ALL.iter().for_each(|name| set(name, format!("socks5h://{place}")));
    environment.retain(|(name, _)| name != NODE);
    environment.push((NODE.into(), "1".into()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_of_the_user_are_replaced() {
        let variable = |name: &str, value: &str| (name.into(), value.into());
        let mut environment = vec![
            variable("A", "b"),
            variable("NO_PROXY", "x"),
            variable("https_proxy", "http://p"),
        ];
        set_proxy_variables(&mut environment, Some(7));
        assert!(environment.contains(&variable("HTTPS_PROXY", "http://127.0.0.1:7")));
        assert!(environment.contains(&variable("all_proxy", "socks5h://127.0.0.1:7")));
        assert!(!environment.contains(&variable("NO_PROXY", "x")));
        set_proxy_variables(&mut environment, None);
        assert_eq!(environment, [variable("A", "b"), variable(NODE, "1")]);
    }
}
