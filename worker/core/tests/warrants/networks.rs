//! Networks beside the reference implementation: what Gateward reads as a network, the reference reads too.

use gateward_core::warrant::constraint::Constraint;
use tenuo::constraints::Cidr;

#[test]
fn a_network_that_is_read_is_read_there() {
    for (text, here, there) in [
        ("10.0.0.0/8", true, true),
        ("0.0.0.0/0", true, true),
        ("10.1.2.3", true, true),
        ("10.1.2.3/32", true, true),
        ("2001:db8::/32", true, true),
        ("::/0", true, true),
        ("1:2:3:4:5:6:7::/128", true, true),
        ("::ffff:10.0.0.0/104", true, true),
        // Others read the first number as octal.
        ("010.0.0.0/8", false, false),
        ("10.0.0.00/8", false, false),
        ("1:2:3:4:5:6:7::8/128", false, false),
        ("fe80::1%eth0/128", false, false),
        ("10.0.0/8", false, false),
        ("10.0.0.0/33", false, false),
        ("10.0.0.0/", false, false),
        ("10.0.0.0/8/8", false, false),
        ("/8", false, false),
        ("", false, false),
        // They say something else than they seem to.
        ("10.1.2.3/8", false, true),
        ("10.0.0.0/08", false, true),
        ("10.0.0.0/+8", false, true),
        ("10.0.0.0/255.0.0.0", false, true),
    ] {
        assert_eq!(Constraint::cidr(text).is_some(), here, "{text}");
        assert_eq!(Cidr::new(text).is_ok(), there, "{text}");
    }
}
